"""The app that the page about workers shows, served as a worker serves it."""

import re
from functools import partial
from typing import Any

from tests.herdgate_gateway.worker_kit.serving_worker import Working, id_in, serving
from tests.servers import ROOT
from tests.wire import eventually


def app_of_the_page() -> Any:
    """Its `app`."""
    found = re.search(r"^```python\n(.*?)^```$", (ROOT / "docs" / "workers.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names["app"]


async def is_kept(worker: Working, name: str, seq: int) -> bool:
    row = await worker.table.connection(name)
    return row is not None and row.last_seq == seq


async def test_app_of_the_page_counts_on_where_it_was_in_a_connection_with_a_row() -> None:
    async with serving(app_of_the_page()) as worker:
        name = id_in(3)
        await worker.table.make_connection(name)
        for number in (1, 2):
            async with worker.open(3) as client:
                await client.send("hello")
                assert await client.recv() == f"{name} in shard 3: message {number}"
                await eventually(partial(is_kept, worker, name, number), "it is kept")


async def test_app_of_the_page_serves_a_connection_without_a_row_from_the_beginning() -> None:
    async with serving(app_of_the_page()) as worker:
        for _ in range(2):
            async with worker.open(4) as client:
                await client.send("hello")
                assert await client.recv() == f"{id_in(4)} in shard 4: message 1"
        assert await worker.table.connection(id_in(4)) is None
