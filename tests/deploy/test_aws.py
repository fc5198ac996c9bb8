"""ECS task definitions, CloudFormation templates, attributes of target groups and balancers."""

import json
from pathlib import Path
from typing import Any

import pytest

from herdgate_gateway.deployments.checking import Checked, check_deployments
from herdgate_gateway.deployments.report import lines
from tests.deploy.manifests import ids

ENVIRONMENT = {
    "HERDGATE_RATE": "200",
    "HERDGATE_MAX_OPEN": "4000",
    "HERDGATE_FLEET__REDIS": "redis://redis:6379",
    "HERDGATE_DRAIN__AWS__ECS": "true",
    "HERDGATE_DRAIN__SIGTERM_S": "60",
    "HERDGATE_DRAIN__SIGN_S": "60",
    "HERDGATE_DRAIN__SETTLE_S": "15",
}


def task(*, environment: dict[str, str] | None = None, fargate: bool = True, **container: Any) -> Any:
    told = {**ENVIRONMENT, **(environment or {})}
    inside = {
        "name": "gateway",
        "image": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/herdgate:1.0",
        "command": ["serve"],
        "stopTimeout": 90,
        "environment": [{"name": name, "value": value} for name, value in told.items()],
        **container,
    }
    kinds = ["FARGATE"] if fargate else ["EC2"]
    return {"family": "gateway", "requiresCompatibilities": kinds, "containerDefinitions": [inside]}


def attributes(**told: int) -> Any:
    keys = {"delay": "deregistration_delay.timeout_seconds", "idle": "idle_timeout.timeout_seconds"}
    return {"Attributes": [{"Key": keys[name], "Value": str(value)} for name, value in told.items()]}


def judged(folder: Path, *documents: Any) -> Checked:
    files = []
    for number, document in enumerate(documents):
        files.append(folder / f"{number}.json")
        files[-1].write_text(json.dumps(document))
    return check_deployments(files, None)


BY_FILE = {"HERDGATE_DRAIN__FILE": "/run/herdgate/drain", "HERDGATE_DRAIN__FILE_S": "60"}

WELL = {
    "a task": [task()],
    "a task as AWS tells it": [{"taskDefinition": task()}],
    "its containers alone, as Terraform has them": [task()["containerDefinitions"]],
    "a task and its target group": [task(), attributes(delay=75, idle=60)],
    "a task of EC2": [task(fargate=False, stopTimeout=600)],
    "a worker": [task(command=["worker", "app:app", "--stop-s", "80"], environment={})],
    "a sign by a file": [task(environment={"HERDGATE_DRAIN__AWS__ECS": "", **BY_FILE}), attributes(delay=75)],
    "Redis in a secret": [task(secrets=[{"name": "HERDGATE_FLEET__REDIS", "valueFrom": "arn:aws:ssm:x"}])],
}

ONE_FAULT = [
    ("settings-not-seen", [task(environmentFiles=[{"type": "s3", "value": "arn:aws:s3:::bucket/gateway.env"}])]),
    ("settings-not-seen", [task(secrets=[{"name": "HERDGATE_DRAIN__SIGN_S", "valueFrom": "arn:aws:ssm:x"}])]),
    ("shell-as-pid-1", [task(command=["sh", "-c", "herdgate serve"])]),
    ("grace-too-short", [task(stopTimeout=64)]),
    ("grace-too-short", [task(environment={"HERDGATE_DRAIN__SIGTERM_S": "86"})]),
    ("grace-too-short", [task(command=["worker", "app:app"], stopTimeout=30)]),
    ("grace-beyond-fargate", [task(stopTimeout=121)]),
    ("shell-as-pid-1", [task(entryPoint=["sh", "-c"], command=["herdgate serve"])]),
    ("drain-too-slow", [task(environment={"HERDGATE_MAX_OPEN": "4500"})]),
    ("sign-outlives-deregistration", [task(), attributes(delay=72)]),
    ("no-early-sign", [task(environment={"HERDGATE_DRAIN__AWS__ECS": "off"}), attributes(delay=75)]),
    ("no-early-sign", [task(environment={"HERDGATE_DRAIN__AWS__ECS": "off"}), attributes(delay=10)]),
    ("drain-too-slow", [task(environment={"HERDGATE_MAX_OPEN": "4500"}), attributes(delay=75)]),
    ("idle-shorter-than-pings", [task(), attributes(idle=20)]),
    ("idle-close-to-pings", [task(), attributes(idle=30)]),
]


@pytest.mark.parametrize("documents", WELL.values(), ids=WELL)
def test_nothing_is_found_where_all_is_well(tmp_path: Path, documents: list[Any]) -> None:
    result = judged(tmp_path, *documents)
    assert ids(result) == []
    assert len(result.cases) == 1


@pytest.mark.parametrize(("rule", "documents"), ONE_FAULT)
def test_one_fault_is_one_finding(tmp_path: Path, rule: str, documents: list[Any]) -> None:
    assert ids(judged(tmp_path, *documents)) == [rule]


def test_a_task_without_a_stop_timeout_has_30_s(tmp_path: Path) -> None:
    told = task()
    del told["containerDefinitions"][0]["stopTimeout"]
    (finding,) = judged(tmp_path, told).findings
    assert finding.detail == "stopTimeout is 30 s: sigterm_s 60 s + 5 s to spare are 65 s"


TEMPLATE = """
AWSTemplateFormatVersion: "2010-09-09"
Parameters:
  Delay: {Type: Number, Default: 75}
  Stop: {Type: Number, Default: 90}
  Image: {Type: String}
Mappings:
  Timers: {short: {Stop: 25}}
Resources:
  Gateway:
    Type: AWS::ECS::TaskDefinition
    Properties:
      RequiresCompatibilities: [FARGATE]
      ContainerDefinitions:
        - Name: gateway
          Image: !Sub "${Image}"
          EntryPoint: [herdgate]
          Command: [serve]
          StopTimeout: !Ref Stop
          Environment:
            - {Name: HERDGATE_RATE, Value: "200"}
            - {Name: HERDGATE_MAX_OPEN, Value: "1300"}
            - {Name: HERDGATE_DRAIN__AWS__TARGET_GROUPS, Value: !Ref Targets}
            - {Name: HERDGATE_DRAIN__SETTLE_S, Value: "15"}
            - {Name: HERDGATE_DRAIN__SIGN_S, Value: "60"}
            - {Name: HERDGATE_DRAIN__SIGTERM_S, Value: "60"}
            - {Name: HERDGATE_FLEET__REDIS, Value: !Sub "redis://${Redis.Address}"}
            - {Name: HERDGATE_LEASES__TABLE, Value: !GetAtt Table.Arn}
  Service:
    Type: AWS::ECS::Service
    Properties:
      TaskDefinition: !Ref Gateway
      DesiredCount: 3
  Targets:
    Type: AWS::ElasticLoadBalancingV2::TargetGroup
    Properties:
      TargetGroupAttributes:
        - {Key: deregistration_delay.timeout_seconds, Value: !Ref Delay}
  Balancer:
    Type: AWS::ElasticLoadBalancingV2::LoadBalancer
    Properties:
      LoadBalancerAttributes:
        - {Key: idle_timeout.timeout_seconds, Value: "70"}
"""

CHANGES = [
    ("Default: 90", "Default: 90", []),
    ("Default: 90", "Default: 25", ["grace-too-short"]),
    ("Default: 75", "Default: 20", ["balancer-cuts-drain", "sign-outlives-deregistration"]),
    ("Value: !Ref Delay", "Value: !GetAtt Other.Delay", []),
    ("DesiredCount: 3", "DesiredCount: 1", ["single-replica"]),
    ("TaskDefinition: !Ref Gateway", "TaskDefinition: !GetAtt Gateway.TaskDefinitionArn", []),
    ("TaskDefinition: !Ref Gateway\n      DesiredCount: 3", "TaskDefinition: !Ref Gateway", ["single-replica"]),
    ("StopTimeout: !Ref Stop", "StopTimeout: !If [Big, 9, 3]", []),
    ("StopTimeout: !Ref Stop", "StopTimeout: !FindInMap [Timers, short, Stop]", ["grace-too-short"]),
    ('SIGN_S, Value: "60"', "SIGN_S, Value: !GetAtt Other.Sign", ["settings-not-seen"]),
    ("DesiredCount: 3", "DesiredCount: !If [Big, 9, 3]", []),
    ("DesiredCount: 3", "DesiredCount: 4", ["rollout-too-fast"]),
    (
        "DesiredCount: 3",
        "DesiredCount: 3\n      DeploymentConfiguration: {MinimumHealthyPercent: 0, MaximumPercent: 100}",
        ["rollout-leaves-none"],
    ),
    ('Value: "70"}', 'Value: "15"}', ["idle-shorter-than-pings"]),
    ("Command: [serve]", "Command: [worker, 'app:app', --stop-s, '90']", ["grace-too-short"]),
]


SCALING = """
  Scaling:
    Type: AWS::ApplicationAutoScaling::ScalableTarget
    Properties:
      ResourceId: !Join ["/", [service, !Ref Cluster, !GetAtt Service.Name]]
      MinCapacity: 2
      MaxCapacity: 3
  Policy:
    Type: AWS::ApplicationAutoScaling::ScalingPolicy
    Properties:
      ScalingTargetId: !Ref Scaling
"""
TRACKING = """
      TargetTrackingScalingPolicyConfiguration:
        PredefinedMetricSpecification: {PredefinedMetricType: ECSServiceAverageCPUUtilization}
"""
STEPS = """
      StepScalingPolicyConfiguration:
        AdjustmentType: ChangeInCapacity
        StepAdjustments: [{ScalingAdjustment: 2}, {ScalingAdjustment: -1}]
"""

SCALED = [
    (STEPS, []),
    (STEPS.replace("-1", "-2"), ["scale-in-drops-many"]),
    (STEPS.replace("ChangeInCapacity", "PercentChangeInCapacity").replace("-1", "-33"), []),
    (STEPS.replace("ChangeInCapacity", "PercentChangeInCapacity").replace("-1", "-34"), ["scale-in-drops-many"]),
    (STEPS.replace("ChangeInCapacity", "ExactCapacity").replace("-1", "3"), []),
    (STEPS.replace("ChangeInCapacity", "ExactCapacity").replace("-1", "1"), ["scale-in-drops-many"]),
    (TRACKING, ["scales-by-cpu", "scale-in-drops-many"]),
    (TRACKING + "        DisableScaleIn: true\n", ["scales-by-cpu"]),
    (TRACKING.replace("CPU", "Memory") + "        DisableScaleIn: true\n", ["scales-by-cpu"]),
    (TRACKING.replace("CPU", "Request") + "        DisableScaleIn: true\n", []),
]


@pytest.mark.parametrize(("policy", "rules"), SCALED)
def test_what_scales_a_service_is_read(tmp_path: Path, policy: str, rules: list[str]) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE + SCALING + policy)
    result = check_deployments([tmp_path / "t.yaml"], None)
    assert ids(result) == rules
    (case,) = result.cases
    assert case.workload.copies is not None
    assert (case.workload.copies.least, case.workload.copies.most, case.workload.copies.at_once) == (2, 3, 3)


def test_what_scales_another_service_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE + SCALING.replace("Service.Name", "Other.Name") + TRACKING)
    assert ids(check_deployments([tmp_path / "t.yaml"], None)) == []


def test_number_of_tasks_that_only_aws_knows_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE + SCALING.replace("MaxCapacity: 3", "MaxCapacity: !Ref Most") + TRACKING)
    result = check_deployments([tmp_path / "t.yaml"], None)
    assert ids(result) == []
    assert result.cases[0].workload.copies is None


def test_values_of_parameters_hold_over_their_defaults(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE)
    (tmp_path / "values.json").write_text('{"Parameters": {"Stop": "25", "Delay": "75", "OfAnother": "1"}}')
    (tmp_path / "more.json").write_text('{"Parameters": {"Delay": 20}}')
    files = [tmp_path / name for name in ("values.json", "t.yaml", "more.json")]
    assert ids(check_deployments(files[:2], None)) == ["grace-too-short"]
    assert "balancer-cuts-drain" in ids(check_deployments(files, None))


def test_values_of_parameters_alone_are_nothing_to_judge(tmp_path: Path) -> None:
    result = judged(tmp_path, {"Parameters": {"Rate": "500"}})
    assert result.faults == (f"{tmp_path}/0.json: has no gateway and no worker in it; give what deploys them too",)


@pytest.mark.parametrize(("old", "new", "rules"), CHANGES)
def test_template_is_read_with_its_services_and_balancers(tmp_path: Path, old: str, new: str, rules: list[str]) -> None:
    assert old in TEMPLATE
    (tmp_path / "t.yaml").write_text(TEMPLATE.replace(old, new, 1))
    assert ids(check_deployments([tmp_path / "t.yaml"], None)) == rules


OTHERS = """
  Web:
    Type: AWS::ECS::TaskDefinition
    Properties:
      ContainerDefinitions: [{Name: web, Image: nginx}]
  WebService:
    Type: AWS::ECS::Service
    Properties:
      TaskDefinition: !Ref Web
      LoadBalancers: [{TargetGroupArn: !Ref WebTargets}]
  WebTargets:
    Type: AWS::ElasticLoadBalancingV2::TargetGroup
    Properties:
      TargetGroupAttributes: [{Key: deregistration_delay.timeout_seconds, Value: "5"}]
"""


def test_target_group_of_another_service_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE + OTHERS)
    assert ids(check_deployments([tmp_path / "t.yaml"], None)) == []
    (tmp_path / "t.yaml").write_text(
        TEMPLATE + OTHERS.replace("TaskDefinition: !Ref Web", "TaskDefinition: !Ref Gateway")
    )
    assert "balancer-cuts-drain" in ids(check_deployments([tmp_path / "t.yaml"], None))


def test_timer_that_only_aws_knows_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE.replace("StopTimeout: !Ref Stop", "StopTimeout: !GetAtt Other.Stop"))
    (line,) = lines(check_deployments([tmp_path / "t.yaml"], None))
    assert line.endswith("sign_s 60 s, stopTimeout not known")


def test_template_without_attributes_has_those_of_aws(tmp_path: Path) -> None:
    text = TEMPLATE.replace("TargetGroupAttributes", "Tags").replace("LoadBalancerAttributes", "Tags")
    (tmp_path / "t.template").write_text(text)
    (case,) = check_deployments([tmp_path / "t.template"], None).cases
    assert [(each.deregistration_s, each.idle_s) for each in case.balancers] == [(300, None), (None, 60)]


def test_template_may_be_json(tmp_path: Path) -> None:
    said = {"ContainerDefinitions": [{"Name": "g", "Image": "herdgate"}]}
    resources = {"T": {"Type": "AWS::ECS::TaskDefinition", "Properties": said}}
    result = judged(tmp_path, {"Resources": resources})
    assert [case.workload.where for case in result.cases] == [f"{tmp_path}/0.json T g"]
