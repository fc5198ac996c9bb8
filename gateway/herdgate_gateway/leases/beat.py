"""Beats: they renew the right of one life, and are sent only while its process can act.

Rules:
- a right counts from before its beat was sent; an answer that comes late brings a short one, or none;
- a beat that was refused ends this life at once; one that nobody knows of is tried again, soon;
- none is sent while the loop that would act stands still: a blocked one must not keep what it does not serve.
"""

from collections.abc import Callable

from herdgate_gateway.leases.acts import beat
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.table import Done, Lost

__all__ = ["Beats"]

_AGAIN_S = 0.1
_LATE_S = 0.5


class Beats:
    """The beats of one life.

    Args:
        beat_s: seconds between two of them.
        load: sockets there are now.
        is_awake: False while the process could not act.

    Attributes:
        trouble_at: when one failed or was late last, by the clock; None: never.
    """

    def __init__(self, life: Life, *, beat_s: float, load: Callable[[], int], is_awake: Callable[[], bool]) -> None:
        self._life = life
        self._beat_s, self._load, self._is_awake = beat_s, load, is_awake
        self._known = 0
        self.trouble_at: float | None = None

    async def run(self, renewed: Callable[[], None], lost: Callable[[], None]) -> None:
        """Beat until this life is over, or cancelled.

        Args:
            renewed: called after each beat that was carried out.
            lost: called once, if one was refused.
        """
        clock, right = self._life.clock, self._life.right
        while True:
            sent_at = clock.now()
            if self._is_awake():
                await self._beat(sent_at, renewed)
            if right.is_lost:
                lost()
                return
            is_fine = self._life.may_act() and self.trouble_at != sent_at
            await clock.sleep(max(0.0, sent_at + self._beat_s - clock.now()) if is_fine else _AGAIN_S)

    async def _beat(self, sent_at: float, renewed: Callable[[], None]) -> None:
        life = self._life
        row = life.row
        outcome = await life.table.write(beat(life.fleet, row.worker, row.inc, self._load(), self._known))
        if isinstance(outcome, Done):
            self._known = outcome.item["hb"]
            life.right.renew(sent_at)
            renewed()
        elif isinstance(outcome, Lost):
            life.right.lose()
        if not isinstance(outcome, Done) or life.clock.now() - sent_at > _LATE_S:
            self.trouble_at = sent_at
