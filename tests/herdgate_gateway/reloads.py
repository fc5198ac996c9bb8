"""Changing the settings of a running gateway, as users do: write the file, then send SIGHUP.

    lines = await reload(gateway, "rate = 10", "rate = 20")

Rules: the file is replaced at once, never half written; a reload is over when the log says how it went.
"""

import signal

from tests.herdgate_gateway.serving import Serving
from tests.wire import WAIT_S, eventually

__all__ = ["hang_up", "outcomes", "reload", "rewrite"]


def rewrite(gateway: Serving, old: str, new: str) -> None:
    """Change a part of the settings file."""
    file = gateway.folder / "herdgate.toml"
    text = file.read_text()
    assert old in text
    (gateway.folder / "new.toml").write_text(text.replace(old, new))
    (gateway.folder / "new.toml").replace(file)


def hang_up(gateway: Serving) -> None:
    """Send SIGHUP."""
    gateway.process.send_signal(signal.SIGHUP)


def outcomes(gateway: Serving) -> list[str]:
    """What the log says of reloads."""
    return [line for line in gateway.log().splitlines() if "settings" in line]


async def reload(gateway: Serving, old: str = "", new: str = "", *, lines: int = 1) -> list[str]:
    """Change a part of the file, reload, and wait for so many lines in the log; they are the answer."""
    before = len(outcomes(gateway))
    rewrite(gateway, old, new)
    hang_up(gateway)

    async def is_over() -> bool:
        return len(outcomes(gateway)) >= before + lines

    await eventually(is_over, "the reload is over", within_s=WAIT_S)
    return outcomes(gateway)[before:]
