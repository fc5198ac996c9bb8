"""Gateways as users start them, which drain by early signs: of ministack's ELBv2 and ECS, and of states it lacks."""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.child_servers import free_port
from tests.dynamodb import set_credentials
from tests.herdgate_gateway.drain.draining import ask, ends, newcomers, steps
from tests.herdgate_gateway.drain.fake_aws import CLUSTER, GROUP, fake_aws, task_arn
from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.serving import Serving, launched, serving
from tests.ministack import AwsServer, ministack
from tests.redis_servers import redis_server
from tests.wire import eventually, knock

METADATA = "ECS_CONTAINER_METADATA_URI_V4"
SIGN = "an early sign: to be over within 30 s"


def aws_server() -> AbstractContextManager[AwsServer]:
    """ministack, with load balancers and ECS."""
    return ministack(AwsServer, services="elasticloadbalancing,ecs")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)


def toml(group: str = "", target: str = "", *, redis: str = "", more: str = "") -> str:
    watched = f'target_groups = ["{group}"]\ntarget = "{target}"\n' if group else ""
    fleet = f'[fleet]\nredis = "{redis}"\n' if redis else ""
    return f"rate = 20\nburst = 50\n{fleet}[drain]\nsign_s = 30\n[drain.aws]\nevery_s = 1\n{watched}{more}"


async def says(gateway: Serving, line: str, within_s: float = 20) -> None:
    async def is_said() -> bool:
        return line in gateway.log()

    await eventually(is_said, f"the log says {line}", within_s=within_s)


async def is_drained(gateway: Serving) -> bool:
    drain = (await ask(gateway, "/status.json")).json()["drain"]
    return drain is not None and drain["state"] == "drained"


async def is_not_draining(gateway: Serving) -> None:
    assert (await ask(gateway, "/status.json")).json()["drain"] is None, gateway.log()


async def test_target_that_is_deregistered_drains_its_gateway_and_its_clients_are_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with aws_server() as aws:
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        elb = aws.client("elbv2")
        balancer = elb.create_load_balancer(Name="front", Subnets=["subnet-1"])["LoadBalancers"][0]["LoadBalancerArn"]
        group = elb.create_target_group(Name="web", Protocol="HTTP", Port=80, VpcId="vpc-1", TargetType="ip")
        arn = group["TargetGroups"][0]["TargetGroupArn"]
        forward = [{"Type": "forward", "TargetGroupArn": arn}]
        elb.create_listener(LoadBalancerArn=balancer, Protocol="HTTP", Port=80, DefaultActions=forward)
        async with echo_worker() as worker:
            with serving(toml(arn, "10.0.0.1:8000"), worker.url) as gateway, serving("rate = 20", worker.url) as other:
                clients = await newcomers(gateway, 5)
                elb.register_targets(TargetGroupArn=arn, Targets=[{"Id": "10.0.0.2", "Port": 8000}])
                await is_not_draining(gateway)
                elb.register_targets(TargetGroupArn=arn, Targets=[{"Id": "10.0.0.1", "Port": 8000}])
                await says(gateway, "early signs: target 10.0.0.1:8000 of web is in service")
                await is_not_draining(gateway)
                elb.deregister_targets(TargetGroupArn=arn, Targets=[{"Id": "10.0.0.1", "Port": 8000}])
                for end in await ends(clients):
                    assert end.code == 1012
                    shown = [("Herdgate-Ticket", end.told["ticket"])]
                    assert (await knock(other.port, "/ws", headers=shown)).status == 101
                await eventually(lambda: is_drained(gateway), "it is drained")
                assert (await ask(gateway, "/readyz")).text == "drained\n"
                assert steps(gateway)[0][2] == SIGN
                assert "an early sign: target 10.0.0.1:8000 of web is gone" in gateway.log()


async def test_task_that_is_stopped_drains_its_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    with aws_server() as aws, fake_aws() as metadata:
        ecs = aws.client("ecs")
        ecs.create_cluster(clusterName="chat")
        container = {"name": "gateway", "image": "herdgate", "memory": 64}
        ecs.register_task_definition(family="gateway", containerDefinitions=[container])
        task = ecs.run_task(cluster="chat", taskDefinition="gateway")["tasks"][0]["taskArn"]
        metadata.metadata = {"Cluster": "chat", "TaskARN": task, "Containers": []}
        monkeypatch.setenv(METADATA, metadata.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        async with echo_worker() as worker:
            with serving(toml(more="ecs = true"), worker.url) as gateway:
                clients = await newcomers(gateway, 3)
                await says(gateway, "is in service")
                await is_not_draining(gateway)
                ecs.stop_task(cluster="chat", task=task)
                assert {end.code for end in await ends(clients)} == {1012}
                assert steps(gateway)[0][2] == SIGN


@pytest.mark.parametrize("processes", [1, 2])
async def test_one_look_drains_all_processes_of_a_gateway(processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_aws() as aws:
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        monkeypatch.setenv(METADATA, aws.url)
        network = {"NetworkMode": "awsvpc", "IPv4Addresses": ["10.0.0.1"]}
        aws.metadata = {"Cluster": CLUSTER, "TaskARN": task_arn(1), "Containers": [{"Networks": [network]}]}
        aws.groups[GROUP] = {"10.0.0.1:80": "healthy"}
        aws.tasks[task_arn(1)] = "RUNNING", "RUNNING"
        settings = f"processes = {processes}\n{toml(GROUP, '10.0.0.1:80', more='ecs = true')}"
        async with echo_worker() as worker:
            with serving(settings, worker.url) as gateway:
                clients = await newcomers(gateway, 6)
                await says(gateway, "of web is in service")
                aws.tasks[task_arn(1)] = "DEACTIVATING", "RUNNING"
                assert {end.code for end in await ends(clients)} == {1012}
                await eventually(lambda: is_drained(gateway), "it is drained")
                assert gateway.log().count(": drained") == processes
                assert gateway.log().count("an early sign: task") == 1


async def test_gateway_that_asks_for_all_is_killed_and_another_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_aws() as aws, redis_server() as redis:
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        aws.groups[GROUP] = {f"10.0.0.{number}:80": "healthy" for number in (1, 2)}
        async with echo_worker() as worker:
            started = [_fleet_gateway(monkeypatch, worker.url, redis.url, number) for number in (1, 2)]
            with started[0]() as one, started[1]() as two:
                gateways = {"gateway1": one, "gateway2": two}
                for gateway in gateways.values():
                    await says(gateway, "is in service")
                await eventually(lambda: _has_grown(aws.calls, Counter(), 8), "one of them has told both", within_s=20)
                (lease,) = redis.command("KEYS", "*:lookout:*:lease")
                before = Counter(aws.calls)
                await eventually(lambda: _has_grown(aws.calls, before, 4), "one of them asks", within_s=20)
                grown = {key[0]: count - before[key] for key, count in aws.calls.items()}
                asking = max(grown, key=lambda name: grown[name])
                other = "gateway2" if asking == "gateway1" else "gateway1"
                assert grown[other] <= 1, "only one asks, but for a look at most that it owes itself"
                clients = await newcomers(gateways[other], 4)
                gateways[asking].process.send_signal(signal.SIGKILL)
                calls = aws.asked_by(other)
                await eventually(lambda: _is_more(aws.asked_by(other), calls + 2), "the other one asks", within_s=20)
                assert redis.command("EXISTS", lease)
                aws.groups[GROUP][f"10.0.0.{other[-1]}:80"] = "draining"
                assert {end.code for end in await ends(clients)} == {1012}
                assert steps(gateways[other])[0][2] == SIGN


def _fleet_gateway(
    monkeypatch: pytest.MonkeyPatch, worker: str, redis: str, number: int
) -> Callable[[], AbstractContextManager[Serving]]:
    def start() -> AbstractContextManager[Serving]:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"gateway{number}")
        return serving(toml(GROUP, f"10.0.0.{number}:80", redis=redis), worker)

    return start


async def _has_grown(calls: Counter[tuple[str, str]], before: Counter[tuple[str, str]], by: int) -> bool:
    return calls.total() >= before.total() + by


async def _is_more(count: int, than: int) -> bool:
    return count > than


async def test_without_an_answer_of_aws_a_gateway_serves_and_says_why_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    async with echo_worker() as worker:
        with serving(toml(GROUP, "10.0.0.1:80"), worker.url) as gateway:
            await says(
                gateway, "no early signs for now: DescribeTargetHealth of web: Could not connect to the endpoint"
            )
            assert (await knock(gateway.port, "/ws")).status == 101
            await is_not_draining(gateway)
            assert await asyncio.to_thread(gateway.end) == 0
            assert "Traceback" not in gateway.log()


async def test_what_only_ecs_knows_and_is_not_set_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(METADATA, raising=False)
    settings = f'workers = ["ws://127.0.0.1:1"]\nrate = 5\n[drain.aws]\ntarget_groups = {json.dumps([GROUP])}'
    with launched(settings) as gateway:
        assert await asyncio.to_thread(gateway.process.wait, 20) == 2
        assert gateway.log().splitlines()[-1].startswith("herdgate: drain.aws.target: got nothing; write ID:PORT")
        assert "Traceback" not in gateway.log()
