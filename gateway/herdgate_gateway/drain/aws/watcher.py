"""The looks of one process: who asks AWS, and what is made of the answer.

    in a fleet         one of those that ask the same asks for all, and tells each where it stands; one whose standing
                       is not what it has seen itself looks for itself, as only that counts
    Redis away, or     everybody looks for itself
    without fleet

So in a quiet fleet of any size each target group is asked for once in `every_s`, and a process asks for itself when it
starts, when it is registered, and when it goes. Who has no answer lets another one ask.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from contextlib import suppress

from herdgate.stores.redis.errors import LinkError
from herdgate.stores.redis.lookout import FleetLookout, LookoutTold
from herdgate_gateway.drain.aws.aside import Aside
from herdgate_gateway.drain.aws.asking import Aws
from herdgate_gateway.drain.aws.complaints import Complaints
from herdgate_gateway.drain.aws.faults import Fault, fault_of
from herdgate_gateway.drain.aws.sharing import read_members, text_of_identity, text_of_standings
from herdgate_gateway.drain.aws.signs import TASK, Answer, Identity, Memory, Standing, standings

__all__ = ["Watcher"]

LOOK_S = 20.0
"""Seconds after which a look has failed, whatever holds it up: names that are not resolved, credentials."""

_logger = logging.getLogger("herdgate.drain")


class Watcher:
    """Of one process.

    Args:
        every_s: seconds between two looks.
        lookout: who looks for all. None: everybody for itself.
    """

    def __init__(
        self, every_s: float, identity: Identity, aws: Aws, lookout: FleetLookout | None, complaints: Complaints
    ) -> None:
        self._every_s, self._identity, self._aws, self._lookout = every_s, identity, aws, lookout
        self._what, self._complaints, self._memory = text_of_identity(identity), complaints, Memory()
        self._aside = Aside[Answer](LOOK_S)
        self._found: str | None = None
        """By its own last look."""

    async def run(self) -> None:
        """Return once there is a sign."""
        await asyncio.sleep(self._every_s * random.random())  # a fleet that starts together does not ask together
        while True:
            if await self._look():
                return
            await asyncio.sleep(self._every_s * random.uniform(0.8, 1.2))

    async def _look(self) -> bool:
        told = await self._ask_fleet()
        is_looking = told is not None and told.is_looking
        if told is not None and not is_looking and self._found is not None and told.found == self._found:
            return False
        members = read_members(told.members, self._identity) if told is not None and is_looking else {}
        answer = await self._ask_aws(members)
        if is_looking:
            await self._tell_fleet(answer, members)
        return self._heed(standings(answer, self._identity))

    def _heed(self, found: Mapping[str, Standing]) -> bool:
        """Take note of what this process has seen itself; True for a sign."""
        self._found = text_of_standings(found) if found else None
        before = set(self._memory.seen)
        sign = self._memory.heed(found)
        for where in sorted(self._memory.seen - before):
            _logger.info("early signs: %s is in service", self._named(where))
        if sign is not None:
            _logger.warning("an early sign: %s is %s", self._named(sign), found[sign])
        return sign is not None

    async def _ask_fleet(self) -> LookoutTold | None:
        if self._lookout is None:
            return None
        try:
            return await self._lookout.ask(self._what, wants=self._aside.is_free and self._aws.is_due)
        except LinkError:
            return None

    async def _tell_fleet(self, answer: Answer, members: Mapping[str, Identity]) -> None:
        assert self._lookout is not None
        with suppress(LinkError):
            if answer.is_empty:
                await self._lookout.ask(self._what, wants=False)
            else:
                found = {name: text_of_standings(standings(answer, one)) for name, one in members.items()}
                await self._lookout.tell(self._what, found)

    async def _ask_aws(self, members: Mapping[str, Identity]) -> Answer:
        tasks = {one.task for one in (self._identity, *members.values()) if one.task is not None}
        faults: list[Fault] = []
        answer = Answer({})
        try:
            answer = await self._aside.ask(lambda: self._aws.ask(sorted(tasks), faults.append))
        except (TimeoutError, RuntimeError) as error:  # or there is no thread to be had
            faults.append(fault_of("asking AWS", error))
        for fault in faults:
            self._complaints.say(fault)
        return answer

    def _named(self, where: str) -> str:
        if where == TASK:
            return f"task {(self._identity.task or '').rpartition('/')[2]}"
        return f"target {self._identity.target} of {where.split('/')[1]}"
