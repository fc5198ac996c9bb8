"""How much longer an admission takes for going to the owner: two gateways in front of one worker, asked in turn.

One has the worker in its settings, the other one finds it as the owner of every shard in the lease table, which it has
read long before. Neither has a Redis; both find the connection's id in the query. The worker takes whoever comes.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from herdgate_loadtest.bench.latency import handshake_ms
from herdgate_loadtest.bench.sides.contenders import EchoWorker, echo_worker, wait_for
from herdgate_loadtest.demo.process import HOST, Process, listening
from herdgate_loadtest.servers.emulator import REGION, aws_environment, emulator
from herdgate_loadtest.servers.lease_table import FLEET, SHARDS, TABLE, Place

__all__ = ["Pair", "two_gateways"]

_PAUSE_S = 0.002  # in which the last socket ends
_WARM_UP = 50


class Pair:
    """Ports of both gateways."""

    def __init__(self, direct: int, routed: int) -> None:
        self._ports = (direct, routed)

    def added_ms(self, pairs: int) -> tuple[float, float]:
        """Medians over so many pairs of handshakes, each with one id: what routing added, and without it, ms.

        Raises:
            CrowdError: an answer was no 101.
        """
        taken = [self._both(number) for number in range(-_WARM_UP, pairs)][_WARM_UP:]
        return statistics.median(routed - direct for direct, routed in taken), statistics.median(
            direct for direct, _ in taken
        )

    def _both(self, number: int) -> tuple[float, float]:
        """Whose turn is first changes."""
        taken = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            time.sleep(_PAUSE_S)
            taken[which] = handshake_ms(self._ports[which], f"/?id=c{number}")
        return taken[0], taken[1]


@contextmanager
def two_gateways() -> Iterator[Pair]:
    """Both are ready."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="herdgate-")))
        place, worker = Place(stack.enter_context(emulator()), ""), stack.enter_context(echo_worker())
        place.make_table()
        _own_everything(place, worker)
        leases = f'[leases]\ntable = "{TABLE}"\nregion = "{REGION}"\nendpoint_url = {json.dumps(place.endpoint)}\n'
        direct = _start(stack, folder / "direct.toml", f'workers = ["{_url(worker)}"]\n', "")
        yield Pair(direct, _start(stack, folder / "routed.toml", "", leases))


def _own_everything(place: Place, worker: EchoWorker) -> None:
    for shard in range(SHARDS):
        place.put(pk=f"{FLEET}#S#{shard:04d}", sk="@", owner="echo", inc="1", addr=_url(worker), epoch=1)


def _url(worker: EchoWorker) -> str:
    return f"ws://{HOST}:{worker.port}"


def _start(stack: ExitStack, file: Path, first: str, last: str) -> int:
    """A gateway, as soon as it is ready: its port."""
    with listening() as clients, listening() as admin:
        file.write_text(f"""\
{first}listen = ["fd:{clients.fileno()}"]
rate = 100_000

[[routes]]
name = "default"
connection_id = {{ query = "id" }}

[admin]
listen = "fd:{admin.fileno()}"

{last}""")
        arguments = ["herdgate", "serve", "--config", str(file)]
        process = Process(f"gateway {file.stem}", arguments, [clients, admin], environ=aws_environment())
        stack.enter_context(process)
        port: int = clients.getsockname()[1]

    def is_ready() -> bool:
        process.check()
        return process.is_ready()

    wait_for(is_ready, f"{process.name} is ready")
    return port
