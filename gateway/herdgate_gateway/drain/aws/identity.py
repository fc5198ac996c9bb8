"""Which target and which task this process is: from its settings, and from the metadata of its ECS task.

The metadata endpoint (version 4) is asked for what never changes: cluster, ARN and address. How the task fares it does
not tell: it jumps from RUNNING to STOPPED (aws/containers-roadmap#2012).
"""

import json
import re
from collections.abc import Mapping
from http.client import HTTPException
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.request import ProxyHandler, build_opener

from herdgate.core.errors import ConfigurationError
from herdgate_gateway.drain.aws.options import AwsSettings
from herdgate_gateway.drain.aws.signs import Identity, Target

__all__ = ["METADATA", "Place", "check_place", "read_place"]

METADATA = "ECS_CONTAINER_METADATA_URI_V4"
TIMEOUT_S = 2.0
_MOST_BYTES = 1 << 20
_TASK = re.compile(r"arn:aws[a-z-]*:ecs:[a-z0-9-]+:[0-9]{12}:task/[A-Za-z0-9_/-]{1,300}")


class Place(NamedTuple):
    """Where this process runs.

    Attributes:
        cluster: of its task, name or ARN. None: no task is watched.
    """

    identity: Identity
    cluster: str | None


def check_place(settings: AwsSettings, environ: Mapping[str, str], port: int | None) -> None:
    """Check that what is not set can be asked for here.

    Args:
        port: that is listened on; None: there is none that a balancer could be told.

    Raises:
        ConfigurationError: it cannot.
    """
    is_in_ecs = bool(environ.get(METADATA))
    if settings.ecs and not is_in_ecs:
        raise ConfigurationError("drain.aws.ecs", True, f"leave it out outside ECS: {METADATA} is not set")
    if settings.target_groups and settings.target is None and not (is_in_ecs and port):
        why = "no TCP port is set to listen on" if is_in_ecs else f"only ECS tells it, and {METADATA} is not set"
        raise ConfigurationError("drain.aws.target", "nothing", f"write ID:PORT as it is registered: {why}")


def read_place(settings: AwsSettings, environ: Mapping[str, str], port: int | None) -> Place:
    """What this process is; asks the metadata endpoint where it has to. Blocks for `TIMEOUT_S` at most at a time.

    Raises:
        OSError: the endpoint does not answer, or not as it should.
    """
    needs_address = bool(settings.target_groups) and settings.target is None
    told = _ask(environ[METADATA]) if settings.ecs or needs_address else {}
    try:
        target = Target(_address(told), port) if needs_address else settings.target and Target.parse(settings.target)
        task, cluster = _task(told) if settings.ecs else (None, None)
        return Place(Identity(target or None, task), cluster)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise OSError(f"what {METADATA} names tells nothing of a task ({error!r})") from None


def _ask(url: str) -> Any:
    opener = build_opener(ProxyHandler({}))  # it is a link-local address
    try:
        with opener.open(f"{url}/task", timeout=TIMEOUT_S) as reply:
            return json.loads(reply.read(_MOST_BYTES))
    except (HTTPException, RecursionError, ValueError) as error:
        raise OSError(f"what {METADATA} names does not answer in JSON ({error!r})") from None


def _task(told: Any) -> tuple[str, str]:
    """ARN of the task, and its cluster, by name or ARN."""
    arn, cluster = told["TaskARN"], told["Cluster"]
    if not (_TASK.fullmatch(arn) and cluster and isinstance(cluster, str)):
        raise ValueError(f"TaskARN {arn:.100}, Cluster {cluster!r:.100}")
    return arn, cluster


def _address(told: Any) -> str:
    """The private address of the task, which all its containers share in the network mode `awsvpc`."""
    networks = [network for container in told["Containers"] for network in container.get("Networks", ())]
    own = [network for network in networks if network.get("NetworkMode") == "awsvpc"]
    if not own:
        raise OSError("the task has no address of its own (network mode awsvpc): write drain.aws.target")
    addresses = [*own[0].get("IPv4Addresses", ()), *own[0].get("IPv6Addresses", ())]
    return str(ip_address(str(addresses[0])))
