"""What a server is asked at start-up: whether it can keep the state of a fleet, and will not drop it.

Each fault is one line with its way out. What a managed service does not let one ask is taken to be in order.
"""

from typing import Any

from herdgate.core.errors import ConfigurationError
from herdgate.stores.redis.channel import Channel
from herdgate.stores.redis.driver import exceptions
from herdgate.stores.redis.faults import is_forbidden
from herdgate.stores.redis.scripts import Script

__all__ = ["self_test"]

KEEPS = "noeviction"


async def self_test(channel: Channel, key: bytes, *, where: str, is_cluster: bool) -> None:
    """Test the server of a channel.

    Args:
        key: written and deleted.
        where: how messages name the server.
        is_cluster: what the URL says.

    Raises:
        ConfigurationError: the wrong kind of server, or one set up in a way that cannot work.
        redis.exceptions.RedisError, TimeoutError: it serves nobody now.
    """
    info = await _info(channel)
    if info.get("cluster_enabled") == "1" and not is_cluster:
        way_out = "write redis+cluster://host:port (rediss+cluster:// with TLS)"
        raise ConfigurationError("redis", f"a node of a cluster at {where}", way_out)
    await _check_eviction(channel, info, where)
    await _check_scripts(channel, key, f"{info.get('redis_version', 'unknown')} at {where}", where)


async def _info(channel: Channel) -> dict[str, str]:
    """INFO, by field; nothing where it is forbidden."""
    told = await _if_allowed(channel, "INFO")
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else ""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value for name, colon, value in pairs if colon}


async def _check_eviction(channel: Channel, info: dict[str, str], where: str) -> None:
    """Our keys have a time to live, so both the allkeys and the volatile policies may drop them."""
    told = await _if_allowed(channel, "CONFIG", "GET", "maxmemory*")
    words = [word.decode() for word in told if isinstance(word, bytes)] if isinstance(told, list) else []
    settings = dict(zip(words[::2], words[1::2], strict=False))
    limit = settings.get("maxmemory") or info.get("maxmemory", "0")
    policy = settings.get("maxmemory-policy") or info.get("maxmemory_policy", KEEPS)
    if limit != "0" and policy != KEEPS:
        way_out = (
            f"set maxmemory-policy {KEEPS}; until then it is used all the same, and may drop the state of the fleet"
        )
        raise ConfigurationError("redis", f"maxmemory-policy {policy} at {where}", way_out)


async def _check_scripts(channel: Channel, key: bytes, version: str, where: str) -> None:
    script = Script.load("check")
    try:
        await channel.ask("EVAL", script.text, 1, key)
        await channel.ask("EVALSHA", script.sha, 1, key)
    except exceptions.ReadOnlyError as error:
        raise exceptions.ReadOnlyError("a read-only replica: name the primary, or use redis+sentinel://") from error
    except exceptions.ResponseError as error:
        if is_forbidden(error):
            needed = f"allow EVAL, EVALSHA and TIME, and all keys that start with {{herdgate:<fleet>}} ({error})"
            raise ConfigurationError("redis", f"a user without permission at {where}", needed) from error
        if "non deterministic" in str(error):
            way_out = "use 5 or later: scripts there may write after they asked the time"
            raise ConfigurationError("redis", f"Redis {version}", way_out) from error
        raise


async def _if_allowed(channel: Channel, *words: str) -> Any:
    """The reply; None where the command is forbidden or unknown, as it is on managed services."""
    try:
        return await channel.ask(*words)
    except (exceptions.OutOfMemoryError, exceptions.ClusterDownError):
        raise
    except exceptions.ResponseError:
        return None
