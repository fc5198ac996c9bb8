"""How to find the one server that keeps the state of a fleet: it is named, sentinels know it, or a cluster does.

A route opens a channel to that server each time it is asked, and believes nothing it found before: names are resolved,
sentinels and nodes are asked anew. Whoever answered last is asked first.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from herdgate.stores.redis.address import Address, Node
from herdgate.stores.redis.channel import Channel
from herdgate.stores.redis.driver import Connection, SSLConnection, exceptions, key_slot

__all__ = ["Cluster", "Direct", "Route", "Sentinels", "route_of"]

ASK_S = 0.5  # for one sentinel or node to answer where the server is
HOPS = 4  # of redirections that are followed
MOST_NODES = 64  # of a cluster that are remembered


class Route(Protocol):
    """Opens channels to the server of a key."""

    async def open(self, key: bytes) -> Channel:
        """A channel to that server. Raises an error of redis-py or OSError."""
        ...


def route_of(address: Address) -> Route:
    """The route to an address."""
    if address.kind == "sentinel":
        return Sentinels(address)
    return Cluster(address) if address.kind == "cluster" else Direct(address)


class Direct:
    """One server, named by its address."""

    def __init__(self, address: Address) -> None:
        self._address = address

    async def open(self, key: bytes) -> Channel:
        """A channel to it."""
        return await Channel.open(self._address.connection())


class Sentinels:
    """A primary that sentinels watch (redis.io/docs/latest/develop/reference/sentinel-clients)."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._sentinels = list(address.nodes)

    async def open(self, key: bytes) -> Channel:
        """A channel to the primary of now."""
        return await Channel.open(self._address.connection(await _first(self._sentinels, self._primary)))

    async def _primary(self, sentinel: Node) -> Node:
        try:
            return await self._asked(sentinel, with_password=False)
        except exceptions.AuthenticationError:
            return await self._asked(sentinel, with_password=True)

    async def _asked(self, sentinel: Node, *, with_password: bool) -> Node:
        kept = ("password", "username") if with_password else ()
        options = {
            name: value
            for name, value in self._address.options.items()
            if name in kept or name not in ("db", "password", "username")
        }
        kind = SSLConnection if issubclass(self._address.connection_class, SSLConnection) else Connection
        channel = await Channel.open(kind(host=sentinel[0], port=sentinel[1], **options), ASK_S)
        try:
            found = await channel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._address.service, within_s=ASK_S)
        finally:
            await channel.aclose()
        if not found:
            raise exceptions.ConnectionError(f"sentinel {sentinel[0]}:{sentinel[1]} knows no {self._address.service}")
        host, port = found
        return host.decode(), int(port)


class Cluster:
    """The node of a cluster that serves the slot of a key. All keys of a fleet are in one slot: it takes one node.

    See redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._nodes = list(address.nodes)
        self._host = address.nodes[0][0]

    async def open(self, key: bytes) -> Channel:
        """A channel to the node that the cluster says serves the slot."""
        slot = key_slot(key)

        async def owner(node: Node) -> Node:
            return await self._owner(node, slot)

        node = await _first(self._nodes, owner)
        for _ in range(HOPS):
            channel = await self.open_node(node)
            try:
                await channel.ask("EXISTS", key, within_s=ASK_S)
            except exceptions.MovedError as moved:  # who was asked before has not heard of it yet
                await channel.aclose()
                node = moved.node_addr
            except exceptions.ResponseError:
                return channel
            except BaseException:
                await channel.aclose()
                raise
            else:
                return channel
        raise exceptions.ClusterDownError(f"CLUSTERDOWN no node admits to slot {slot}")

    async def open_node(self, node: Node) -> Channel:
        """A channel to a node; one that a redirection names without a host is on the host of the last one."""
        self._host = node[0] or self._host
        return await Channel.open(self._address.connection((self._host, node[1])))

    async def _owner(self, node: Node, slot: int) -> Node:
        channel = await Channel.open(self._address.connection(node), ASK_S)
        try:
            ranges: list[list[Any]] = await channel.ask("CLUSTER", "SLOTS", within_s=ASK_S)
        finally:
            await channel.aclose()
        self._remember(_node(told, node) for _, _, *nodes in ranges for told in nodes)
        for first, last, primary, *_ in ranges:
            if first <= slot <= last:
                return _node(primary, node)
        raise exceptions.ClusterDownError(f"CLUSTERDOWN no node serves slot {slot}")

    def _remember(self, told: Any) -> None:
        """Seeds may all be replaced in time; the nodes they named are asked then."""
        self._nodes += [node for node in dict.fromkeys(told) if node not in self._nodes]
        del self._nodes[MOST_NODES:]


def _node(told: list[Any], asked: Node) -> Node:
    """A node as CLUSTER SLOTS tells it; one that does not know its own address is the one asked."""
    host = (told[0] or b"").decode()
    return (host if host not in ("", "?") else asked[0]), told[1]


async def _first(nodes: list[Node], ask: Callable[[Node], Awaitable[Node]]) -> Node:
    """The first answer; who gave it is moved to the front. Raises the last error if there is no answer."""
    error: Exception = exceptions.ConnectionError("nobody to ask")
    for node in list(nodes):
        try:
            found = await ask(node)
        except (exceptions.RedisError, OSError) as failed:
            error = failed
        else:
            nodes.remove(node)
            nodes.insert(0, node)
            return found
    raise error
