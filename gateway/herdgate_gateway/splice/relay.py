"""The relay, byte by byte: what the front door calls for a client that the gate has admitted.

    dial -> the worker's 101 -> join -> ... -> ended

Rules:
- nothing is sent to the client before the worker has answered: its 101 becomes the client's 101, its refusal the
  client's refusal, whole (`WorkerRefused`); anything else is `Refused`;
- one arrival is one attempt at one worker, on a fresh connection: at the one that the fleet has granted, if any;
- a dial that is cancelled leaves nothing, neither socket nor assignment;
- a worker that breaks the rules, or a client that leaves, is nobody's error here: nothing is logged for one client
  (what is said of a worker is `worker_log`).
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial

from herdgate import Refused
from herdgate.asgi import Scope
from herdgate.core.permits import Permit
from herdgate_gateway.asking import asking
from herdgate_gateway.bridge import RelaySettings
from herdgate_gateway.drain.sockets import Cuts
from herdgate_gateway.headers import Forwarding, request_headers
from herdgate_gateway.recall import Inviting
from herdgate_gateway.routing.destination import Destination
from herdgate_gateway.routing.router import Router
from herdgate_gateway.splice.handshake import Handshake
from herdgate_gateway.splice.joint import Joint
from herdgate_gateway.splice.sweeper import Sweeper
from herdgate_gateway.splice.upstream import Upstream, dial
from herdgate_gateway.workers import WorkerPool

__all__ = ["SpliceRelay"]

ABORT_S = 1.0
"""Seconds for the loop to see aborted connections off."""


class SpliceRelay:
    """Joins clients and workers.

    Args:
        pool: the workers.
        settings: its limits.
        forwarding: what workers are told of the clients; it may be replaced.
        member: what the fleet calls this process; workers are told it, and report by it.
        router: knows which worker an arrival needs; None: any will do.
        cuts: counts clients that vanish.
    """

    def __init__(
        self,
        pool: WorkerPool,
        settings: RelaySettings,
        forwarding: Forwarding,
        *,
        member: str | None = None,
        router: Router | None = None,
        cuts: Cuts | None = None,
    ) -> None:
        self._pool, self._settings, self._router = pool, settings, router
        self._told = [] if member is None else [("herdgate-gateway", member)]
        self.forwarding = forwarding
        self._sweeper = Sweeper(settings, cuts)

    @property
    def joints(self) -> Collection[Joint]:
        """Those that are open, oldest first."""
        return self._sweeper.joints

    async def dial(self, scope: Scope, permit: Permit | None = None) -> Upstream:
        """Take a client's handshake to a worker.

        Args:
            scope: the client's; its handshake has been checked.
            permit: names the worker that the fleet has granted, by its URL, if it has granted one.

        Returns:
            What is to be joined with the client, or discarded.

        Raises:
            Refused: `upstream`: no worker may have it (502), the one chosen is out of reach or speaks no sense (502),
                or has not answered in time (504). `no_owner`: nobody owns its shard.
            WorkerRefused: it said no; its answer is the client's.
        """
        if self._router is None:
            return await self._dial(scope, permit.worker if permit else None)
        upstream, destination = await self._router.dial(scope, partial(self._dial_owner, scope))
        upstream.destination = destination
        if permit is not None:
            permit.move(destination.url)
        return upstream

    def join(
        self,
        upstream: Upstream,
        client: asyncio.Transport,
        ended: Callable[[], None],
        early: bytes = b"",
        *,
        invite: Inviting | None = None,
    ) -> Joint:
        """Send the client its 101, and let the bytes pass.

        Args:
            upstream: of `dial`.
            client: its connection, to which nothing has been written, with its TCP options set; whether it is being
                read does not matter.
            ended: called once, when both connections are gone; within this call, if both are by now.
            early: what the client sent before its 101.
            invite: calls it back, if its worker is lost.
        """
        joint = Joint(self._settings, upstream, client, self._sweeper, ended, invite=invite)
        if self._router is not None and upstream.destination is not None:
            joint.when_over(self._router.opened(upstream.destination, joint.recall))
        self._sweeper.add(joint)
        joint.start(upstream, early)
        return joint

    async def aclose(self, code: int, reason: str, within_s: float) -> None:
        """Close all that is open, and abort what is left after that many seconds."""
        for joint in tuple(self.joints):
            joint.close(code, reason)
        await self._sweeper.wait_empty(within_s)
        for joint in tuple(self.joints):
            joint.abort()
        await self._sweeper.wait_empty(ABORT_S)

    async def _dial_owner(self, scope: Scope, destination: Destination) -> Upstream:
        return await self._dial(scope, destination.url, destination.stamp)

    async def _dial(self, scope: Scope, worker: str | None, stamp: Sequence[tuple[str, str]] = ()) -> Upstream:
        """Dial, and tell the pool what came of it."""
        assignment = self._pool.choose(worker)
        if assignment is None:
            raise Refused("upstream")
        handshake = Handshake(scope, [*request_headers(scope, self.forwarding), *self._told, *stamp])
        try:
            async with asking(assignment, self._settings.setup_s):
                return await dial(handshake, assignment)
        except BaseException:
            assignment.release()
            raise
