"""What the gate and the relays ask of a fleet with leases: which worker an arrival needs, and how it is dialled.

before the gate   the only worker that can take it, or nobody: it is told when to come back, and no token is spent
the dial          to the owner, with shard and epoch; refused or out of reach, the owner is read again, once
while it is open  its shard may move: then it is closed, and its client called back
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from herdgate import ConfigurationError, Refused
from herdgate.asgi import Scope
from herdgate.core.answers import NOBODY
from herdgate_gateway.leases.channel import Channel, News
from herdgate_gateway.leases.rows import shard_of
from herdgate_gateway.leases.table import LeaseTable
from herdgate_gateway.routing.destination import Destination
from herdgate_gateway.routing.directory import Directory
from herdgate_gateway.routing.owners import Owner, Owners
from herdgate_gateway.routing.sockets import ShardSockets
from herdgate_gateway.worker_leg import WorkerRefused
from herdgate_gateway.workers import WorkerPool, check_url

__all__ = ["Router"]

MISDIRECTED = 421
"""The status of a worker that is not the owner (RFC 9110 section 15.5.20), with `Herdgate-Shard`."""

_T = TypeVar("_T")
_logger = logging.getLogger("herdgate.routing")


class Router:
    """Of one gateway. Belongs to one event loop.

    Args:
        pool: gets the owners as its workers.
        table: where shards are.
        fleet: its name.
        channel: where news is heard; None: nowhere.
    """

    def __init__(self, pool: WorkerPool, table: LeaseTable, fleet: str, channel: Channel | None) -> None:
        self._pool = pool
        self._sockets = ShardSockets()
        self._owners = Owners(self._sockets.recall)
        self._directory = Directory(table, fleet, self._owners, channel, self._changed)
        self._lives: dict[str, str] = {}
        self._refused_urls: set[str] = set()
        self._said: set[str] = set()

    @property
    def owners(self) -> Owners:
        """Who owns what, as far as is known."""
        return self._owners

    @property
    def is_ready(self) -> bool:
        """True once the owners were read."""
        return self._directory.is_read

    def start(self) -> None:
        """Begin, in the running loop."""
        self._directory.start()

    async def aclose(self) -> None:
        """End, and let go of table and channel."""
        await self._directory.aclose()

    def hear(self, news: News) -> None:
        """Something that is told on the channel."""
        self._directory.hear(news)

    def worker_of(self, scope: Scope) -> str:
        """The worker that an arrival with a connection id needs, or `NOBODY`."""
        shard = shard_of(scope["state"]["connection_id"])
        owner = self._find(shard)
        return NOBODY if owner is None or not self._pool.takes(owner.url) else owner.url

    async def dial(self, scope: Scope, attempt: Callable[[Destination], Awaitable[_T]]) -> tuple[_T, Destination]:
        """Take an admitted arrival to its owner.

        Args:
            attempt: at one worker; raises `Refused` and `WorkerRefused` as the relays do.

        Raises:
            Refused: `no_owner`: there is none, or none that says so itself. Otherwise as `attempt`.
            WorkerRefused: the owner said no.
        """
        shard = shard_of(scope["state"]["connection_id"])
        first = self._destination(shard)
        if first is None:  # it is looked for already
            raise Refused("no_owner")
        try:
            return await attempt(first), first
        except WorkerRefused as refused:
            if not _is_misdirected(refused):
                raise
            await self._directory.follow(shard, first.epoch)
            failed = Refused("no_owner")
        except Refused as refused:
            if refused.reason != "upstream":
                raise
            await self._directory.read(shard)
            failed = refused
        again = self._destination(shard)
        if again is None or again == first:
            self._directory.want(shard)
            if failed.reason == "no_owner" and again is not None:
                self._say_denied(again)
            raise failed
        return await self._dial_again(again, attempt)

    def opened(self, destination: Destination, recall: Callable[[], None]) -> Callable[[], None]:
        """An arrival is in: call it back when its shard moves.

        Returns:
            What is to be called when it has ended.
        """
        shard, _, epoch = destination
        forget = self._sockets.add(shard, epoch, recall)
        owner = self._find(shard)
        if owner is not None and owner.epoch > epoch:  # it has moved meanwhile
            self._sockets.recall(shard, owner.epoch)
        return forget

    async def _dial_again(
        self, destination: Destination, attempt: Callable[[Destination], Awaitable[_T]]
    ) -> tuple[_T, Destination]:
        try:
            return await attempt(destination), destination
        except WorkerRefused as refused:
            if not _is_misdirected(refused):
                raise
            raise Refused("no_owner") from None

    def _say_denied(self, owner: Destination) -> None:
        """Once for each place: there is something wrong that does not mend itself."""
        if owner.url not in self._said:
            self._said.add(owner.url)
            _logger.warning("worker %s refuses clients of shards that are its own by the table", owner.url)

    def _destination(self, shard: int) -> Destination | None:
        owner = self._find(shard)
        return None if owner is None else Destination(shard, owner.url, owner.epoch)

    def _find(self, shard: int) -> Owner | None:
        owner = self._owners.find(shard)
        if owner is None:
            self._directory.want(shard)
            return None
        return owner if owner.url not in self._refused_urls else None

    def _changed(self) -> None:
        """Make the owners the workers of the pool."""
        lives = {owner.url: owner.inc for owner in self._owners if self._is_sound(owner)}
        urls = sorted(lives)
        self._pool.replace(urls)
        for url in urls:
            if self._lives.get(url, lives[url]) != lives[url]:
                self._pool.welcome(url)
        self._lives |= lives

    def _is_sound(self, owner: Owner) -> bool:
        try:
            check_url(owner.url)
        except ConfigurationError:
            self._refused_urls.add(owner.url)
            if owner.worker not in self._said:
                self._said.add(owner.worker)
                _logger.error("%s", _no_address(owner))
            return False
        return True


def _no_address(owner: Owner) -> str:
    if owner.url:
        return f"worker {owner.worker} says that it is at {owner.url}, which is no ws://host:port: set --addr there"
    return (
        f"worker {owner.worker} owns connections and serves no clients, as it was started without an app: "
        "give workers that only dial out a --fleet of their own"
    )


def _is_misdirected(refused: WorkerRefused) -> bool:
    response = refused.response
    return response.status_code == MISDIRECTED and "herdgate-shard" in response.headers
