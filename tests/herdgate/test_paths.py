"""Which paths are guarded."""

from collections.abc import Sequence

import pytest

from herdgate.core.errors import ConfigurationError
from herdgate.paths import PathPatterns, route_path


@pytest.mark.parametrize(
    ("patterns", "path", "covered"),
    [
        (["*"], "/", True),
        (["*"], "/any/thing", True),
        (["*"], "", True),
        (["/ws"], "/ws", True),
        (["/ws"], "/ws/", True),
        (["/ws"], "//ws", True),
        (["/ws"], "/ws//", True),
        (["/ws"], "/ws\n", True),
        (["/ws"], "/./chat/../ws", True),
        (["/ws"], "http://x/ws", True),
        (["/ws"], "*", True),
        (["/ws"], "ws", True),
        (["/ws/*"], "//ws//room", True),
        (["/*"], "http://x/ws", True),
        ([], "http://x/ws", False),
        ([], "*", False),
        (["/ws"], "/wss", False),
        (["/ws"], "/WS", False),
        (["/ws/*"], "/ws/", True),
        (["/ws/*"], "/ws/room/1", True),
        (["/ws/*"], "/ws", False),
        (["/ws/*"], "/wsx/room", False),
        (["/ws*"], "/ws", True),
        (["/ws*"], "/wsx/room", True),
        (["/*"], "/ws", True),
        (["/"], "/", True),
        (["/"], "/ws", False),
        (["/a", "/b/*"], "/a", True),
        (["/a", "/b/*"], "/b/c", True),
        (["/a", "/b/*"], "/c", False),
        ([], "/", False),
    ],
)
def test_pattern_is_an_exact_path_or_a_prefix(patterns: list[str], path: str, covered: bool) -> None:
    assert PathPatterns("field", patterns).match(path) is covered


@pytest.mark.parametrize(
    "pattern", ["ws", "", "ws/*", "**", "/a/*/b", "/*/", "*/a", " /ws", "/chat/{id}", "/chat/<id>"]
)
def test_other_patterns_are_errors(pattern: str) -> None:
    with pytest.raises(ConfigurationError, match=r'field: got .*; write "/path", "/prefix/\*" or "\*"'):
        PathPatterns("field", ["/right", pattern])


@pytest.mark.parametrize("patterns", ["/ws", b"/ws"])
def test_one_pattern_without_a_list_is_an_error(patterns: Sequence[str]) -> None:
    with pytest.raises(ConfigurationError, match=r"field: got .*; write a list, as in"):
        PathPatterns("field", patterns)


def test_patterns_that_can_be_read_only_once_are_kept() -> None:
    patterns = PathPatterns("field", iter(["/a", "/b/*"]))  # type: ignore[arg-type]
    assert (patterns.match("/a"), patterns.match("/b/c")) == (True, True)


@pytest.mark.parametrize(
    ("patterns", "path"),
    [
        (["*"], "/"),
        (["/ws"], "/ws"),
        (["/ws/*"], "/ws"),
        (["/ws*"], "/"),
        (["/chat/ws", "/chat/events/*"], "/chat"),
        (["/chat/ws", "/chats/*"], "/"),
        (["/chat/ws", "/chat/ws/*"], "/chat/ws"),
        (["/*"], "/"),
        (["/"], "/"),
        ([], "/"),
    ],
)
def test_cookie_path_holds_all_that_is_covered(patterns: list[str], path: str) -> None:
    assert PathPatterns("field", patterns).cookie_path() == path


@pytest.mark.parametrize(
    ("root", "path", "route"),
    [
        ("", "/ws", "/ws"),
        ("/app", "/app/ws", "/ws"),
        ("/app", "/app/", "/"),
        ("/app", "/app", "/"),
        ("/app/", "/app/ws", "/ws"),
        ("/", "/ws", "/ws"),
        ("/app", "/ws", "/ws"),  # servers that leave the mount point out of the path
        ("/app", "/application/ws", "/application/ws"),
        ("/app", "/appws", "/appws"),
        ("", "", ""),
    ],
)
def test_path_is_read_below_the_mount_point(root: str, path: str, route: str) -> None:
    assert route_path({"path": path, "root_path": root}) == route


def test_scope_may_have_no_mount_point() -> None:
    assert route_path({"path": "/ws"}) == "/ws"
