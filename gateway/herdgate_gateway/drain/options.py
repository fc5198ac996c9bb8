"""Settings of a drain."""

from dataclasses import dataclass
from pathlib import Path

from herdgate.core.errors import ConfigurationError
from herdgate.core.numbers import check_number
from herdgate_gateway.drain.plan import Trigger

__all__ = ["MOST_S", "DrainSettings", "check_deadline"]

MOST_S = 86_400.0
MOST_MESSAGE = 65_536


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """How a gateway ends.

    Attributes:
        sigterm_s: seconds from SIGTERM or SIGINT to the end of the process; below what the platform grants.
        call_s: seconds that a drain by `herdgate drain` may take, unless the call says.
        file_s: the same for one by a file.
        sign_s: the same for one by an early sign of a balancer; below its deregistration delay.
        settle_s: seconds from the trigger in which no socket is closed, and the listeners stay open even if there is
            none, for balancers to notice.
        share: of the fleet's rate that all drains together may use, more than 0.
        max_draining: gateways that drain at once by anything but SIGTERM; the others wait. None: half of the fleet's.
        message: text that each client is sent before its close. None: none.
        file: drains as soon as there is such a file. None: no file does.

    Raises:
        ConfigurationError: one of them is out of its range.
    """

    sigterm_s: float = 25.0
    call_s: float = 120.0
    file_s: float = 120.0
    sign_s: float = 240.0
    settle_s: float = 0.0
    share: float = 0.5
    max_draining: int | None = None
    message: str | None = None
    file: Path | None = None

    def __post_init__(self) -> None:
        for name in ("sigterm_s", "call_s", "file_s", "sign_s", "settle_s"):
            check_deadline(name, getattr(self, name))
        check_number("share", self.share, least=0.01, most=1, unit="a share of the rate")
        none = "half of the fleet's gateways"
        check_number("max_draining", self.max_draining, least=1, unit="a whole number", whole=True, none=none)
        text = self.message
        if text is not None and not (isinstance(text, str) and 1 <= len(text.encode()) <= MOST_MESSAGE):
            raise ConfigurationError("message", str(text)[:40], f"write a text of 1 to {MOST_MESSAGE} bytes")

    def within_s(self, trigger: Trigger) -> float:
        """Seconds that a drain by this trigger may take."""
        seconds: float = getattr(self, f"{trigger}_s")
        return seconds


def check_deadline(name: str, seconds: object) -> None:
    """Check a time to drain in.

    Raises:
        ConfigurationError: it is none.
    """
    check_number(name, seconds, least=0, most=MOST_S, unit="seconds")
