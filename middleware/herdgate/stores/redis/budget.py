"""How often a gateway may call: a small bucket, so that a crowd of any size costs the same number of calls."""

__all__ = ["CallBudget"]

CALLS_PER_S = 50.0
BURST = 10.0


class CallBudget:
    """50 calls a second, 10 at once. `now` is monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._calls = BURST
        self._at = now

    def wait_s(self, now: float) -> float:
        """Seconds until a call may be made; 0.0: now."""
        self._calls = min(BURST, self._calls + (now - self._at) * CALLS_PER_S)
        self._at = now
        return max(0.0, (1 - self._calls) / CALLS_PER_S)

    def spend(self) -> None:
        """One call is made. Ask `wait_s` first."""
        self._calls -= 1
