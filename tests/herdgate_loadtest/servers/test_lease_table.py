"""The lease table as the benchmarks see it."""

import pytest

from herdgate_gateway.leases.rows import SHARDS, shard_key
from herdgate_gateway.leases.rows import shard_of as gateways_shard_of
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers import lease_table
from herdgate_loadtest.servers.children import free_port
from herdgate_loadtest.servers.lease_table import FLEET, Place, shard_of
from tests.dynamodb import DynamoServer, dynamodb

__all__ = ["dynamodb"]


def test_shard_of_a_connection_is_where_gateways_look_for_it() -> None:
    ids = [f"c{number}" for number in range(2_000)]

    assert list(map(shard_of, ids)) == list(map(gateways_shard_of, ids))
    assert lease_table.SHARDS == SHARDS


def test_owners_are_workers_that_live_with_what_their_present_life_owns(dynamodb: DynamoServer) -> None:
    place = Place(dynamodb.url, "")
    place.make_table()
    for name, inc, state in (("one", "1", "UP"), ("two", "2", "DEAD"), ("three", "3", "DRAINING"), ("four", "4", "UP")):
        place.put(pk=f"{FLEET}#W#0", sk=name, inc=inc, st=state)
    for shard, inc in enumerate(("1", "1", "2", "3", "old")):
        place.put(pk=shard_key(FLEET, shard).pk, sk="@", owner="any", inc=inc, addr="ws://127.0.0.1:1", epoch=1)

    assert place.owners() == {"one": {0, 1}, "three": {3}, "four": frozenset()}


def test_table_that_is_not_there_is_one_line() -> None:
    with pytest.raises(CrowdError, match=r"^the lease table does not answer \(.*refused.*\): run it again$"):
        Place(f"http://127.0.0.1:{free_port()}", "").owners()


def test_what_the_table_refuses_is_one_line(dynamodb: DynamoServer) -> None:
    place = Place(dynamodb.url, "")
    place.make_table()
    with pytest.raises(CrowdError, match=r"^the lease table refuses PutItem \(.*\): run it again$"):
        place.put(pk="nothing else")
