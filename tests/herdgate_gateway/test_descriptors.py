"""Open sockets are capped by what the process has descriptors for, and who comes beyond is told when to come back."""

from contextlib import AsyncExitStack

from tests.herdgate_gateway.gateways import echo_worker, until
from tests.herdgate_gateway.serving import serving
from tests.wire import knock, open_socket

LIMITED = ("sh", "-c", 'ulimit -n 100 && exec "$0" "$@"')
ROOM = 10  # 80 descriptors are kept back, and each socket takes two


async def test_no_more_sockets_are_let_in_than_there_are_descriptors_for() -> None:
    async with echo_worker() as worker:
        with serving("rate = 100000", worker.url, by=LIMITED) as gateway:
            assert f"room for {ROOM} sockets" in gateway.log()
            async with AsyncExitStack() as stack:
                for _ in range(ROOM):
                    await stack.enter_async_context(open_socket(gateway.port, "/ws"))
                refused = await knock(gateway.port, "/ws")
                assert (refused.status, refused.json()["reason"]) == (503, "full")
                assert refused.json()["retry_ms"] >= 1_000
            await until(lambda: not gateway.status()["gates"]["default"]["open"], "all have gone")
            assert (await knock(gateway.port, "/ws")).status == 101
