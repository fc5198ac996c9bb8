"""Deployments as they are found: what tools render, what clusters tell, and what stands beside gateways in one file."""

import copy
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from herdgate_gateway.deployments.checking import check_deployments
from herdgate_gateway.deployments.readers.containers import IMAGE_SETTINGS
from tests.deploy.manifests import SETTINGS, budget, checked, gateway, ids, objects, worker, write
from tests.servers import ROOT

HELM = """---
# Source: herd/templates/nothing.yaml
---
# Source: herd/templates/deployment.yaml
{deployment}
---
# Source: herd/templates/rest.yaml
{rest}
---
# Source: herd/crds/monitor.yaml
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {{name: herd, annotations: {{built: 2026-11-30}}}}
spec: {{selector: {{}}}}
"""

SIDECARS = [
    {"name": "proxy", "image": "istio/proxyv2", "args": ["proxy", "sidecar"], "restartPolicy": "Always"},
    {"name": "wait", "image": "busybox", "command": ["sh", "-c", "until nc -z redis 6379; do sleep 1; done"]},
]
LOGS = {"name": "logs", "image": "fluent-bit", "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}}}

SHORT = {"terminationGracePeriodSeconds": 30}


def rollout(strategy: Any, **spec: Any) -> Any:
    """Of Argo."""
    return {**gateway(spec={"strategy": strategy, **spec}), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}


def made(kind: str, of: Any, **changes: Any) -> Any:
    """What a cluster made of a workload, as `kubectl get -o yaml` tells it."""
    tree = copy.deepcopy(of)
    owner = {"apiVersion": "apps/v1", "kind": of["kind"], "name": of["metadata"]["name"], "controller": True}
    tree |= {"kind": kind, "metadata": {"name": "gateway-5d4f", "uid": "x", "ownerReferences": [owner]}}
    if kind == "Pod":
        tree |= {"apiVersion": "v1", "spec": of["spec"]["template"]["spec"], "status": {"phase": "Running"}}
    tree["spec"] = {**tree["spec"], **changes}
    return tree


def scaled(*kinds: str, **spec: Any) -> Any:
    """By KEDA."""
    triggers = [{"type": kind} for kind in kinds]
    slowly = {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}]}}
    told = {"scaleTargetRef": {"name": "gateway"}, "triggers": triggers, "minReplicaCount": 3, "maxReplicaCount": 6}
    behavior = {"advanced": {"horizontalPodAutoscalerConfig": {"behavior": slowly}}}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": {**told, **behavior, **spec}}


def in_namespace(name: str, documents: list[Any]) -> list[Any]:
    documents = copy.deepcopy(documents)
    for each in documents:
        each["metadata"]["namespace"] = name
    return documents


def test_what_helm_renders_is_read(tmp_path: Path) -> None:
    for pod, rules in (({}, []), (SHORT, ["grace-too-short"])):
        deployment = gateway(pod={"initContainers": SIDECARS, **pod})
        deployment["spec"]["template"]["spec"]["containers"].insert(0, LOGS)
        rest = yaml.safe_dump_all(objects()[:1] + objects()[2:])
        (tmp_path / "helm.yaml").write_text(HELM.format(deployment=yaml.safe_dump(deployment), rest=rest))
        result = check_deployments([tmp_path / "helm.yaml"], None)
        assert ids(result) == rules
        assert len(result.cases) == 1


@pytest.mark.parametrize("kind", ["List", "DeploymentList"])
def test_what_a_cluster_tells_is_read(tmp_path: Path, kind: str) -> None:
    deployment = {**gateway(pod=SHORT), "status": {"replicas": 3, "conditions": [{"type": "Available"}]}}
    told = [made("ReplicaSet", deployment, replicas=0), made("Pod", deployment), deployment]
    if kind == "DeploymentList":  # whose items leave their kind out
        told = [{key: value for key, value in deployment.items() if key not in ("apiVersion", "kind")}]
    listed = {"apiVersion": "v1", "kind": kind, "metadata": {"resourceVersion": ""}, "items": told}
    (tmp_path / "all.json").write_text(json.dumps(listed))
    result = checked(tmp_path, [objects()[0], budget()], tmp_path / "all.json", own=None)
    assert [case.workload.where.split()[1] for case in result.cases] == ["Deployment/gateway"]


def test_pods_alone_are_judged_by_their_timers(tmp_path: Path) -> None:
    result = checked(tmp_path, [objects()[0], made("Pod", gateway(pod=SHORT))])
    assert ids(result) == ["grace-too-short"]
    assert result.cases[0].workload.copies is None


ROLLOUTS = [
    (rollout({"canary": {"maxSurge": 1, "maxUnavailable": 0}}), []),
    (rollout({"canary": {"maxSurge": 3, "maxUnavailable": 0}}), ["rollout-too-fast"]),
    (rollout({"canary": {"maxSurge": 1, "maxUnavailable": 0}}, replicas=1), ["single-replica"]),
    (rollout({"blueGreen": {"activeService": "a"}}), ["rollout-too-fast"]),
]


@pytest.mark.parametrize(("tree", "rules"), ROLLOUTS)
def test_rollouts_of_argo_are_judged(tmp_path: Path, tree: Any, rules: list[str]) -> None:
    assert ids(checked(tmp_path, objects(tree))) == rules


def test_kinds_that_are_not_known_are_judged_by_their_pods(tmp_path: Path) -> None:
    tree = {**gateway(pod=SHORT), "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}
    assert ids(checked(tmp_path, objects(tree))) == ["grace-too-short"]


KEDA = [
    (scaled("prometheus"), []),
    (scaled("prometheus", minReplicaCount=1), ["single-replica"]),
    (scaled("cpu", "memory"), ["scales-by-cpu"]),
    (scaled("prometheus", advanced={}), ["scale-in-drops-many"]),
]


@pytest.mark.parametrize(("scaler", "rules"), KEDA)
def test_autoscalers_of_keda_are_judged(tmp_path: Path, scaler: Any, rules: list[str]) -> None:
    deployment = gateway()
    del deployment["spec"]["replicas"]
    assert ids(checked(tmp_path, objects(deployment, scaler))) == rules


def test_each_namespace_has_settings_and_budgets_of_its_own(tmp_path: Path) -> None:
    slow = SETTINGS.replace("call_s = 60", "call_s = 90")
    staging, production = in_namespace("staging", objects(settings=slow)), in_namespace("production", objects())
    result = checked(tmp_path, [*staging, *production])
    assert ids(result) == ["grace-too-short"]
    assert [each.workload.settings and each.workload.settings.drain.call_s for each in result.cases] == [90, 60]
    assert ids(checked(tmp_path, [*production, *staging[:-1]]))[0] == "grace-too-short"
    assert "no-disruption-budget" in ids(checked(tmp_path, [*production, *staging[:-1]]))


def test_settings_of_the_image_count_where_no_others_are_put(tmp_path: Path) -> None:
    env = [{"name": "HERDGATE_RATE", "value": "200"}, {"name": "HERDGATE_MAX_OPEN", "value": "4000"}]
    env += [
        {"name": "HERDGATE_FLEET__REDIS", "value": "redis://redis"},
        {"name": "HERDGATE_DRAIN__CALL_S", "value": "60"},
    ]
    bare = gateway(env=env, volumeMounts=[])
    assert ids(checked(tmp_path, objects(bare))) == ["prestop-too-short"]  # drain.settle_s is 5
    bare["spec"]["template"]["spec"]["containers"][0]["env"] += [{"name": "HERDGATE_DRAIN__SETTLE_S", "value": "15"}]
    assert ids(checked(tmp_path, objects(bare))) == []


def test_settings_of_the_image_are_those_that_are_shipped() -> None:
    assert tomllib.loads(IMAGE_SETTINGS) == tomllib.loads((ROOT / "gateway" / "herdgate.toml").read_text())


def test_image_under_another_name_is_told_by_its_variables(tmp_path: Path) -> None:
    env = [{"name": "HERDGATE_RATE", "value": "200"}]
    built = gateway(image="registry.example/chat:7", env=env, pod=SHORT)
    assert "grace-too-short" in ids(checked(tmp_path, objects(built)))
    other = gateway(image="registry.example/chat:7")
    assert checked(tmp_path, objects(other)).faults == (
        f"{tmp_path}/all.yaml: has no gateway and no worker in it; give what deploys them too",
    )


def test_settings_that_are_not_here_are_told_and_not_guessed(tmp_path: Path) -> None:
    _, *others = objects()
    (finding,) = checked(tmp_path, others).findings
    assert (finding.rule, finding.severity) == ("settings-not-seen", "warning")
    assert finding.detail == "settings of it are in herdgate.toml of the ConfigMap settings, which cannot be seen here"
    (tmp_path / "own.toml").write_text(SETTINGS)
    assert ids(checked(tmp_path, others, own=tmp_path / "own.toml")) == []


def test_timer_of_a_worker_that_is_not_here_is_not_guessed(tmp_path: Path) -> None:
    sources: list[Any] = [
        {"envFrom": [{"configMapRef": {"name": "elsewhere"}}]},
        {"envFrom": [{"secretRef": {"name": "s"}}]},
    ]
    for told in sources:
        result = checked(tmp_path, objects(worker(grace_s=20, **told)))
        assert ids(result) == []
        assert result.cases[0].workload.stop_s is None


def test_folder_names_the_file_that_is_nothing_known(tmp_path: Path) -> None:
    write(tmp_path, objects())
    (tmp_path / "values.yaml").write_text("replicaCount: 3")
    (fault,) = check_deployments([tmp_path], None).faults
    assert fault.startswith(f"{tmp_path}/values.yaml: is nothing known here")
