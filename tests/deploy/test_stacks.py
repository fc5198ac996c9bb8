"""deploy/aws as it is shipped: well, each mutation of it is one finding, rights are the least, and it can be deployed.

The emulator has no Application Auto Scaling and no security group rules of their own; of CloudFormation's tables it
leaves expiry and backups out, of its secrets which letters they may have, of its tasks their secrets; its tasks are
names without processes, and its target groups have ids that are none. What is asserted of those is what templates say.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from herdgate_gateway.deployments.checking import check_deployments
from herdgate_gateway.leases.acts import take
from herdgate_gateway.leases.dynamo import DynamoLeases, Place
from herdgate_gateway.leases.dynamo.schema import create_table
from herdgate_gateway.leases.rows import WorkerRow, connection_key
from herdgate_gateway.leases.table import Done
from herdgate_gateway.settings import load
from tests.deploy.manifests import ids
from tests.deploy.stacks import FOLDER, NAMES, UNKNOWN, AwsServer, Stacks, aws, template
from tests.dynamodb import set_credentials
from tests.herdgate_gateway.worker_kit.dialling_processes import Site, WorkerProcess
from tests.ministack import REGION
from tests.redis_servers import redis_server
from tests.servers import ROOT, poll

__all__ = ["aws"]

MUTATIONS = [
    ("gateways", "StopTimeout: 120", "StopTimeout: 110", "grace-too-short"),
    ("gateways", "StopTimeout: 120", "StopTimeout: 121", "grace-beyond-fargate"),
    ("gateways", 'SIGTERM_S, Value: "110"', 'SIGTERM_S, Value: "116"', "grace-too-short"),
    ("gateways", 'SIGN_S, Value: "280"', 'SIGN_S, Value: "250"', "rollout-too-fast"),
    ("gateways", 'SIGN_S, Value: "280"', 'SIGN_S, Value: "288"', "sign-outlives-deregistration"),
    ("gateways", r"Default: 10000\n", "Default: 12000\n", "rollout-too-fast"),
    ("gateways", r"(MostGateways:\n[^\n]*\n    Default:) 6", r"\1 7", "rollout-too-fast"),
    ("gateways", r"(LeastGateways:\n[^\n]*\n    Default:) 3", r"\1 1", "single-replica"),
    ("gateways", r" +- \{ Name: HERDGATE_DRAIN__AWS__ECS.*?!Ref Targets \}\n", "", "no-early-sign"),
    ("gateways", 'seconds, Value: "120"', 'seconds, Value: "20"', "idle-shorter-than-pings"),
    ("gateways", 'seconds, Value: "120"', 'seconds, Value: "39"', "idle-close-to-pings"),
    ("gateways", "MinimumHealthyPercent: 100", "MinimumHealthyPercent: 0", "rollout-leaves-none"),
    ("gateways", r" +- \{ Name: HERDGATE_FLEET__REDIS[^\n]*\n", "", "replicas-without-fleet"),
    ("gateways", "DisableScaleIn: true", "DisableScaleIn: false", "scale-in-drops-many"),
    ("gateways", "ScalingAdjustment: -1", "ScalingAdjustment: -2", "scale-in-drops-many"),
    ("workers", "StopTimeout: 120", "StopTimeout: 114", "grace-too-short"),
    ("workers", "exec herdgate", "herdgate", "shell-as-pid-1"),
    ("workers", r"Default: 3\n", r"Default: 1\n", "single-replica"),
]


def test_folder_is_well() -> None:
    result = check_deployments([FOLDER], None)
    assert ids(result) == []
    assert [case.workload.role for case in result.cases] == ["gateway", "worker"]
    assert {each.deregistration_s for each in result.cases[0].balancers} == {None, 300}


@pytest.mark.parametrize(("name", "old", "new", "rule"), MUTATIONS)
def test_mutation_is_one_finding(tmp_path: Path, name: str, old: str, new: str, rule: str) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "aws", ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / f"{name}.yaml"
    changed, count = re.subn(old, new, file.read_text(), count=1, flags=re.DOTALL)
    assert count == 1
    file.write_text(changed)
    assert ids(check_deployments([folder], None)) == [rule]


def test_folder_is_judged_by_the_values_that_it_is_deployed_with(tmp_path: Path) -> None:
    values = tmp_path / "herd.json"
    values.write_text('{"Parameters": {"Fleet": "herd", "MaxOpen": "12000", "Rate": "500"}}')
    assert ids(check_deployments([FOLDER, values], None)) == ["rollout-too-fast"]
    values.write_text('{"Parameters": {"Fleet": "herd", "MaxOpen": "12000", "Rate": "600"}}')
    assert ids(check_deployments([FOLDER, values], None)) == []


def statements(name: str) -> Iterator[tuple[str, Any]]:
    """Of all roles, each with the role's name."""
    for role, each in template(name)["Resources"].items():
        if each["Type"] == "AWS::IAM::Role":
            for policy in each["Properties"]["Policies"]:
                yield from ((role, statement) for statement in policy["PolicyDocument"]["Statement"])


def actions(name: str, role: str) -> set[str]:
    found = [statement["Action"] for of, statement in statements(name) if of == role]
    return {action for each in found for action in ([each] if isinstance(each, str) else each)}


def test_nobody_may_do_more_than_needed() -> None:
    reads = {"dynamodb:BatchGetItem", "dynamodb:GetItem"}
    signs = {"elasticloadbalancing:DescribeTargetHealth", "ecs:DescribeTasks"}
    leases = {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"}
    logs = {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert actions("gateways", "Role") == reads | signs
    assert actions("workers", "Role") == leases
    assert actions("events", "Role") == {"dynamodb:UpdateItem", "sqs:SendMessage"} | logs
    everywhere = {
        statement["Action"]
        for name in NAMES
        for _, statement in statements(name)
        if statement["Resource"] == "*" and statement["Effect"] == "Allow"
    }
    assert everywhere == {"elasticloadbalancing:DescribeTargetHealth"}


@pytest.mark.parametrize("name", NAMES)
def test_fleet_is_named_as_all_that_is_named_after_it_may_be(name: str) -> None:
    """As a table (3 letters at least), a bus, and a group of ElastiCache (no hyphen at its end, nor two together)."""
    pattern = template(name)["Parameters"]["Fleet"]["AllowedPattern"]
    for fits in ("herd", "abc", "Chat-eu-1", "x" * 20):
        assert re.fullmatch(pattern, fits)
    for fails in ("ab", "herd-", "a--b", "1st", "-ab", "a_b", "x" * 21):
        assert not re.fullmatch(pattern, fails)


ACTIONS = {"read": "GetItem", "read_many": "BatchGetItem", "query": "Query", "write": "UpdateItem"}
"""What a call of the lease table is to DynamoDB."""


@pytest.mark.parametrize(("stack", "packages"), [("gateways", ["routing"]), ("workers", ["leases", "connections"])])
def test_rights_at_the_table_are_those_of_the_calls_in_the_code(stack: str, packages: list[str]) -> None:
    files = [file for name in packages for file in (ROOT / "gateway" / "herdgate_gateway" / name).glob("*.py")]
    calls = {call for file in files for call in re.findall(r"table\.(\w+)\(", file.read_text())}
    needed = {f"dynamodb:{action}" for call, action in ACTIONS.items() if call in calls}
    assert len(needed) >= 2
    assert {action for action in actions(stack, "Role") if action.startswith("dynamodb:")} == needed


def test_no_listener_leads_to_the_admin_port() -> None:
    resources = template("gateways")["Resources"].values()
    groups = [each["Properties"] for each in resources if each["Type"].endswith("::TargetGroup")]
    assert [(group["Port"], group["HealthCheckPort"]) for group in groups] == [(8000, "9901")]
    service = template("gateways")["Resources"]["Service"]["Properties"]
    assert [each["ContainerPort"] for each in service["LoadBalancers"]] == [8000]


@pytest.fixture(scope="module")
def deployed(aws: AwsServer) -> Stacks:
    stacks = Stacks(aws)
    stacks.deploy(*NAMES)
    return stacks


def test_emulator_knows_all_that_is_not_taken_out_for_it(aws: AwsServer) -> None:
    formation, refused = aws.client("cloudformation"), set()
    for name in NAMES:
        try:
            formation.validate_template(TemplateBody=json.dumps(template(name)))
        except ClientError as error:
            refused |= set(re.findall(r"AWS::\w+::\w+", str(error)))
    assert refused == UNKNOWN


def test_services_find_what_other_stacks_made(deployed: Stacks) -> None:
    services = deployed.server.client("ecs")
    names = [deployed.resource(name, "Service") for name in ("gateways", "workers")]
    gateways, workers = services.describe_services(cluster=deployed.fleet, services=names)["services"]
    (balancer,) = gateways["loadBalancers"]
    assert balancer["targetGroupArn"] == deployed.resource("gateways", "Targets")
    groups = gateways["networkConfiguration"]["awsvpcConfiguration"]["securityGroups"]
    assert groups == [deployed.outputs("network")["GatewayGroup"]]
    assert workers["desiredCount"] == 3
    task = services.describe_task_definition(taskDefinition=gateways["taskDefinition"])["taskDefinition"]
    (container,) = task["containerDefinitions"]
    assert container["stopTimeout"] == 120


def test_gateways_start_with_the_settings_that_they_are_deployed_with(deployed: Stacks) -> None:
    services = deployed.server.client("ecs")
    task = services.describe_task_definition(taskDefinition=f"{deployed.fleet}-gateway")["taskDefinition"]
    told = {each["name"]: each["value"] for each in task["containerDefinitions"][0]["environment"]}
    told["HERDGATE_DRAIN__AWS__TARGET_GROUPS"] = re.sub(r"[^/]+$", "0a", told["HERDGATE_DRAIN__AWS__TARGET_GROUPS"])
    settings = load({}, None, {**told, "HERDGATE_FLEET__REDIS": "redis://stands-in-a-secret"})
    assert (settings.rate, settings.max_open, settings.leases.table) == (500, 10_000, deployed.fleet)
    assert [route.name for route in settings.routes] == ["chat"]
    watched = settings.drain.aws.settings()
    assert watched is not None
    assert (watched.ecs, len(watched.target_groups)) == (True, 1)


def test_url_of_redis_is_one_with_tls_and_the_password_that_was_made(deployed: Stacks) -> None:
    secrets = deployed.server.client("secretsmanager")
    url, password = (
        secrets.get_secret_value(SecretId=deployed.resource("redis", name))["SecretString"]
        for name in ("Url", "Password")
    )
    assert len(password) == 64
    assert re.fullmatch(rf"rediss://:{re.escape(password)}@[a-zA-Z0-9.-]+:6379/0", url)
    said = template("redis")["Resources"]["Password"]["Properties"]["GenerateSecretString"]
    assert said["ExcludePunctuation"] is True  # which the emulator does not know


async def test_table_is_as_leases_init_makes_it(deployed: Stacks, monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    made, found = Place(f"{deployed.fleet}-init", REGION, deployed.server.url), deployed.outputs("table")["Table"]
    assert await create_table(made) is True
    table = deployed.server.client("dynamodb")
    ours, by_command = (table.describe_table(TableName=name)["Table"] for name in (found, made.table))
    for part in ("KeySchema", "AttributeDefinitions", "BillingModeSummary", "GlobalSecondaryIndexes"):
        assert ours.get(part) == by_command.get(part)
    expiry = table.describe_time_to_live(TableName=made.table)["TimeToLiveDescription"]
    said = template("table")["Resources"]["Table"]["Properties"]
    assert said["TimeToLiveSpecification"] == {"AttributeName": expiry["AttributeName"], "Enabled": True}
    assert said["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


async def test_leases_are_held_in_the_table(deployed: Stacks, monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    place = Place(deployed.outputs("table")["Table"], REGION, deployed.server.url)
    assert await create_table(place) is False
    table = DynamoLeases(place, call_s=5)
    row = WorkerRow("w", "mine", None, "UP", 0, 3_000, "ws://10.0.1.5:9000", 1, 0)
    assert isinstance(await table.write(take("other", row, 1, None)), Done)
    assert len(await table.query("other#S#0001", strong=True)) == 1
    await table.aclose()


def put(stacks: Stacks, **detail: Any) -> None:
    """As a program that decides what runs does it."""
    entry = {
        "EventBusName": stacks.outputs("events")["Bus"],
        "Source": "feeds",
        "DetailType": "Herdgate Connection Wanted",
        "Detail": json.dumps(detail),
    }
    assert stacks.server.client("events").put_events(Entries=[entry])["FailedEntryCount"] == 0


def row(stacks: Stacks, name: str) -> Any:
    """As DynamoDB tells it; None: there is none."""
    key = {part: {"S": value} for part, value in connection_key(stacks.fleet, name)._asdict().items()}
    return stacks.server.client("dynamodb").get_item(TableName=stacks.fleet, Key=key, ConsistentRead=True).get("Item")


def dead(stacks: Stacks) -> list[tuple[Any, str]]:
    told = stacks.server.client("sqs").receive_message(
        QueueUrl=stacks.resource("events", "Dead"), MessageAttributeNames=["ERROR_MESSAGE"], VisibilityTimeout=0
    )
    return [
        (json.loads(each["Body"])["detail"], each["MessageAttributes"]["ERROR_MESSAGE"]["StringValue"])
        for each in told.get("Messages", ())
    ]


def test_event_on_the_bus_becomes_a_row_and_a_bad_one_is_put_aside(deployed: Stacks) -> None:
    put(deployed, id="one", want="STARTED", seq=1, attrs={"url": "wss://host/stream"})
    poll(lambda: row(deployed, "one") is not None, "the row is there", within_s=30)
    assert row(deployed, "one")["attrs"] == {"M": {"url": {"S": "wss://host/stream"}}}
    bad = {"id": "one", "want": "STOP", "seq": 2}
    put(deployed, **bad)
    poll(lambda: dead(deployed) != [], "it is in the queue", within_s=30)
    ((kept, reason),) = dead(deployed)
    assert kept == bad
    assert reason.endswith(": detail.want is 'STOP'; write STARTED or STOPPED")
    assert row(deployed, "one")["want"] == {"S": "STARTED"}


def test_worker_dials_what_events_start_and_goes_on_where_it_was(deployed: Stacks, tmp_path: Path) -> None:
    with redis_server() as redis:
        site = Site(deployed.server.url, redis.url, deployed.fleet, tmp_path)
        site.where = ["--fleet", deployed.fleet, *site.where]
        put(deployed, id="fed", want="STARTED", seq=1, attrs={"file": str(site.file)})
        poll(lambda: row(deployed, "fed") is not None, "the row is there", within_s=30)
        worker = WorkerProcess(site, "one", "counts", 3.0)
        try:
            poll(lambda: "fed" in site.running(), "it runs", within_s=40)
            poll(lambda: "last_seq" in row(deployed, "fed"), "it has come somewhere", within_s=20)
            put(deployed, id="fed", want="STOPPED", seq=2)
            poll(lambda: row(deployed, "fed")["want"] == {"S": "STOPPED"}, "it is not wanted", within_s=30)
        finally:
            worker.end()
        stopped = row(deployed, "fed")
        assert {"epoch", "last_seq", "ttl"} <= stopped.keys()
        put(deployed, id="fed", want="STARTED", seq=3)
        poll(lambda: row(deployed, "fed")["want"] == {"S": "STARTED"}, "it is wanted again", within_s=30)
        assert {**row(deployed, "fed"), "want": None, "want_seq": None} == {
            name: None if name in ("want", "want_seq") else value for name, value in stopped.items() if name != "ttl"
        }
        shown = json.loads(site.ask("show", "fed", "--json"))
        assert (shown["want"], str(shown["last_seq"])) == ("STARTED", stopped["last_seq"]["N"])
