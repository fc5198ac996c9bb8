"""The handler that an import string names, or what is wrong with it, in one line."""

import pytest

from herdgate import HerdgateError
from herdgate_gateway.worker_kit.handlers import Connection, load_handler


async def fine(connection: Connection) -> None: ...


async def generator(connection: Connection):  # type: ignore[no-untyped-def]
    yield connection


def plain(connection: Connection) -> None: ...


class Held:
    async def __call__(self, connection: Connection) -> None: ...

    async def method(self, connection: Connection) -> None: ...


held = Held()


@pytest.mark.parametrize("name", ["fine", "held", "held.method"])
def test_handler_is_found(name: str) -> None:
    found = load_handler(f"{__name__}:{name}")
    assert callable(found)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "--dial: got ''; write module:attribute"),
        (__name__, f"--dial: got {__name__}; write module:attribute"),
        (":fine", "--dial: got :fine; write module:attribute"),
        ("no_such_module:fine", "--dial: cannot import no_such_module: No module named 'no_such_module'"),
        (f"{__name__}:none", f"--dial: module {__name__} has no none"),
        (f"{__name__}:plain", "it has to be an async def, called with a connection"),
        (f"{__name__}:generator", "it has to be an async def, called with a connection"),
        (f"{__name__}:Held", "it has to be an async def, called with a connection"),
        (f"{__name__}:__name__", "cannot be called"),
    ],
    ids=str,
)
def test_what_is_no_handler_is_told_in_one_line(name: str, told: str) -> None:
    with pytest.raises(HerdgateError) as raised:
        load_handler(name)
    text = str(raised.value)
    assert told[:60] in text
    assert text.isprintable()
