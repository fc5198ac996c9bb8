"""What a process is to AWS: by its settings, or by the metadata of its task, from a metadata endpoint on loopback."""

import socket
from typing import Any

import pytest

from herdgate.core.errors import ConfigurationError
from herdgate_gateway.drain.aws.identity import METADATA, check_place, read_place
from herdgate_gateway.drain.aws.options import AwsSettings
from herdgate_gateway.drain.aws.signs import Target
from tests.herdgate_gateway.drain.fake_aws import CLUSTER, GROUP, fake_aws, task_arn

AWSVPC = {"NetworkMode": "awsvpc", "IPv4Addresses": ["10.0.2.106"], "IPv6Addresses": ["fd00::1"]}
BRIDGE = {"NetworkMode": "bridge", "IPv4Addresses": ["172.17.0.2"]}


def metadata(network: Any = AWSVPC) -> Any:
    return {"Cluster": CLUSTER, "TaskARN": task_arn(7), "Containers": [{"Networks": [network]}]}


def test_task_knows_its_address_its_name_and_its_cluster() -> None:
    with fake_aws() as aws:
        aws.metadata = metadata()
        place = read_place(AwsSettings((GROUP,), ecs=True), {METADATA: aws.url}, 8000)
    assert (place.identity.target, place.identity.task, place.cluster) == (
        Target("10.0.2.106", 8000),
        task_arn(7),
        CLUSTER,
    )


def test_what_is_not_watched_is_not_asked_for() -> None:
    place = read_place(AwsSettings((GROUP,), "i-0123:80"), {}, 8000)
    assert (place.identity.target, place.identity.task, place.cluster) == (Target("i-0123", 80), None, None)


def test_target_that_is_set_holds_on_ecs_too() -> None:
    with fake_aws() as aws:
        aws.metadata = metadata(BRIDGE)
        place = read_place(AwsSettings((GROUP,), "i-0123:32768", ecs=True), {METADATA: aws.url}, None)
    assert (place.identity.target, place.identity.task) == (Target("i-0123", 32768), task_arn(7))


@pytest.mark.parametrize(
    "told", [None, [], {}, "text", {"Containers": 5}, {"Containers": [{"Networks": [{"NetworkMode": "awsvpc"}]}]}]
)
def test_metadata_that_tell_nothing_of_a_task_are_an_error(told: Any) -> None:
    with fake_aws() as aws:
        aws.metadata = told
        with pytest.raises(OSError, match=r"tells nothing of a task|no address of its own"):
            read_place(AwsSettings((GROUP,), ecs=True), {METADATA: aws.url}, 8000)


def test_task_without_an_address_of_its_own_is_told_the_way_out() -> None:
    with fake_aws() as aws:
        aws.metadata = metadata(BRIDGE)
        with pytest.raises(OSError, match=r"write drain\.aws\.target"):
            read_place(AwsSettings((GROUP,)), {METADATA: aws.url}, 8000)


def test_metadata_endpoint_that_is_not_there_is_an_error() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="refused"):
            read_place(AwsSettings(ecs=True), {METADATA: f"http://127.0.0.1:{nobody.getsockname()[1]}"}, None)


@pytest.mark.parametrize(
    ("settings", "environ", "port", "field"),
    [
        (AwsSettings((GROUP,)), {}, 8000, "drain.aws.target"),
        (AwsSettings((GROUP,)), {METADATA: "http://a"}, None, "drain.aws.target"),
        (AwsSettings(ecs=True), {}, 8000, "drain.aws.ecs"),
        (AwsSettings((GROUP,), "10.0.0.1", ecs=True), {METADATA: ""}, 8000, "drain.aws.ecs"),
    ],
)
def test_what_nobody_can_know_here_has_to_be_set(
    settings: AwsSettings, environ: dict[str, str], port: int | None, field: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        check_place(settings, environ, port)
    assert raised.value.field == field


def test_what_is_set_or_can_be_asked_for_is_enough() -> None:
    check_place(AwsSettings((GROUP,), "10.0.0.1:80"), {}, None)
    check_place(AwsSettings((GROUP,), ecs=True), {METADATA: "http://a"}, 8000)
