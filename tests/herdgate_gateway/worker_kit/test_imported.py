"""Import strings."""

from pathlib import Path

import pytest

from herdgate import HerdgateError
from herdgate_gateway.worker_kit.imported import import_named


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_object_of_a_module_is_found(folder: Path) -> None:
    (folder / "found_app.py").write_text("class Place:\n    @staticmethod\n    def app(): return 7\n")
    assert import_named("APP", "found_app:Place.app")() == 7


@pytest.mark.parametrize("named", ["", "app", ":app", "app:"])
def test_other_forms_are_refused(named: str) -> None:
    with pytest.raises(HerdgateError, match=r"^APP: got .*; write module:attribute, as in myapp:app$"):
        import_named("APP", named)


@pytest.mark.parametrize(
    ("text", "named", "told"),
    [
        (None, "no_such_app:app", r"^APP: cannot import no_such_app: No module named 'no_such_app'$"),
        ("import no_such_thing", "broken_a:app", r"^APP: cannot import broken_a: No module named 'no_such_thing'$"),
        ("1 / 0", "broken_b:app", r"^APP: cannot import broken_b: ZeroDivisionError: division by zero$"),
        ("def f(:", "broken_c:app", r"^APP: cannot import broken_c: SyntaxError: invalid syntax"),
        ("", "empty_d:app", r"^APP: module empty_d has no app; write module:attribute$"),
        ("app = 7", "number_e:app", r"^APP: number_e:app cannot be called$"),
    ],
)
def test_what_cannot_be_had_is_one_line(folder: Path, text: str | None, named: str, told: str) -> None:
    if text is not None:
        (folder / f"{named.partition(':')[0]}.py").write_text(text)
    with pytest.raises(HerdgateError, match=told) as raised:
        import_named("APP", named)
    assert "\n" not in str(raised.value)
