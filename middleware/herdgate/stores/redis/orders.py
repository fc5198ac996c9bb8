"""What a fleet is to be told with the next call: a rate, an admitted share. Pure.

An order is pending until a call that carries it was answered, and holds in this process from the moment it is given.
"""

from collections.abc import Mapping

__all__ = ["Orders"]


class Orders:
    """Those of one process; of each kind, the last one counts."""

    def __init__(self) -> None:
        self._pending: dict[str, float] = {}

    @property
    def rate(self) -> float | None:
        """Admissions per second of the whole fleet, as ordered; None: as it was."""
        return self._pending.get("set_rate", self._pending.get("configure"))

    @property
    def fraction(self) -> float | None:
        """The share of client keys let past, as ordered; None: as it was."""
        return self._pending.get("set_fraction")

    def set_rate(self, rate: float) -> None:
        """An operator asks for this rate."""
        self._pending["set_rate"] = rate

    def configure(self, rate: float) -> None:
        """Settings ask for this rate, later than any operator did."""
        self._pending.pop("set_rate", None)
        self._pending["configure"] = rate

    def set_fraction(self, fraction: float) -> None:
        """Somebody asks for this admitted share."""
        self._pending["set_fraction"] = fraction

    def pending(self) -> Mapping[str, float]:
        """All of them now, for the head of a call."""
        return dict(self._pending)

    def told(self, sent: Mapping[str, float]) -> None:
        """A call with these was answered: what has not changed since is done."""
        for name, value in sent.items():
            if self._pending.get(name) == value:
                del self._pending[name]
