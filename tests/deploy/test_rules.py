"""Each rule fires on what it is for, alone, and on nothing that is well."""

from pathlib import Path
from typing import Any

import pytest

from herdgate_gateway.deployments.rules.table import RULES
from tests.deploy.manifests import SETTINGS, budget, checked, gateway, ids, objects, worker

HALF = {"policies": [{"type": "Percent", "value": 50}]}
SLEEP_5 = {"preStop": {"exec": {"command": ["sleep", "5"]}}}
SLEEP_15 = {"preStop": {"sleep": {"seconds": 15}}}


def replaced(old: str, new: str) -> str:
    assert old in SETTINGS
    return SETTINGS.replace(old, new)


def ask(path: str, port: str) -> Any:
    return {"httpGet": {"path": path, "port": port}}


def surge(at_once: object, away: object) -> dict[str, Any]:
    return {"strategy": {"rollingUpdate": {"maxSurge": at_once, "maxUnavailable": away}}}


def scaler(**spec: Any) -> Any:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "gateway"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "gateway"},
            "minReplicas": 3,
            "maxReplicas": 6,
            "metrics": [{"type": "Pods"}],
            "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}]}},
            **spec,
        },
    }


def ingress(**notes: str) -> Any:
    group = "alb.ingress.kubernetes.io/target-group-attributes"
    balancer = "alb.ingress.kubernetes.io/load-balancer-attributes"
    told = {"group": group, "balancer": balancer, "read": "nginx.ingress.kubernetes.io/proxy-read-timeout"}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "front", "annotations": {told[key]: value for key, value in notes.items()}},
    }


def delay(seconds: int) -> Any:
    return ingress(group=f"deregistration_delay.timeout_seconds={seconds}")


def sleep_and_drain(seconds: int) -> Any:
    return {"preStop": {"exec": {"command": ["sh", "-c", f"sleep {seconds} && herdgate drain --wait"]}}}


def hidden(name: str) -> Any:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": "secret", "key": "k"}}}


def before(service: str) -> Any:
    way = {"path": "/", "backend": {"service": {"name": service}}}
    return {**delay(5), "spec": {"rules": [{"http": {"paths": [way]}}]}}


def service(name: str, **selector: str) -> Any:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"selector": selector}}


SERVICES = [service("front", app="gateway"), service("grafana", app="grafana")]
NLB = {
    "name": "grafana",
    "annotations": {
        "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes": "deregistration_delay.timeout_seconds=5"
    },
}
IN_APP = {
    "matchExpressions": [
        {"key": "app", "operator": "In", "values": ["gateway", "other"]},
        {"key": "app", "operator": "NotIn", "values": ["third"]},
        {"key": "app", "operator": "Exists"},
        {"key": "canary", "operator": "DoesNotExist"},
    ]
}
OUT_OF_APP = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["gateway"]}]}
SECRET = [{"secretRef": {"name": "secret"}}]

WELL = {
    "as it is": objects(),
    "a script that ends with exec": objects(
        gateway(command=["sh", "-c", "ulimit -n 9000; exec herdgate serve"], args=[])
    ),
    "a grace with just enough to spare": objects(gateway(pod={"terminationGracePeriodSeconds": 65})),
    "a deadline of its own": objects(
        gateway(lifecycle={"preStop": {"exec": {"command": ["herdgate", "drain", "--wait", "--deadline", "70"]}}})
    ),
    "preStop that waits": objects(gateway(pod={"terminationGracePeriodSeconds": 80}, lifecycle=SLEEP_15)),
    "two at once and time for both": objects(gateway(spec=surge(2, 0)), settings=replaced("rate = 200", "rate = 400")),
    "a budget in percent": objects(gateway(), budget(minAvailable="60%")),
    "an autoscaler by sockets": objects(gateway(), scaler()),
    "an autoscaler that takes none away": objects(
        gateway(), scaler(behavior={"scaleDown": {"selectPolicy": "Disabled"}})
    ),
    "a balancer with time for a drain": objects(gateway(), delay(60)),
    "one gateway of each node": objects({**gateway(), "kind": "DaemonSet"}),
    "a balancer that waits for pings": objects(gateway(), ingress(read="41")),
    "idle sockets that are pinged": objects(settings=SETTINGS + "relay = { idle_s = 41 }"),
    "a script that ends with exec and sends its output elsewhere": objects(
        gateway(command=["bash", "-o", "pipefail", "-c", "cd /x && exec herdgate serve \\\n  --burst 5 2>&1;"], args=[])
    ),
    "preStop that sleeps and drains, with time for both": objects(
        gateway(pod={"terminationGracePeriodSeconds": 75}, lifecycle=sleep_and_drain(10))
    ),
    "a token in a secret": objects(
        gateway(env=[hidden("HERDGATE_ADMIN__TOKEN")]), settings=replaced(', socket = "/run/control.sock"', "")
    ),
    "none at all": objects(gateway(spec={"replicas": 0})),
    "a budget by an expression": objects(gateway(), budget(selector=IN_APP, maxUnavailable=1)),
    "a budget for all": objects(gateway(), budget(selector={}, maxUnavailable=1)),
    "a balancer before something else": objects(gateway(), before("grafana"), *SERVICES),
    "a service of something else": objects(gateway(), {**SERVICES[1], "metadata": NLB}),
    "a worker": objects(worker("--stop-s", "60")),
    "a worker that sleeps before": objects(worker("--stop-s", "55", lifecycle=SLEEP_15)),
    "a worker by its variable": objects(
        worker(grace_s=30, env=[{"name": "HERDGATE_WORKER__STOP_S", "value": "20"}]),
    ),
}

ONE_FAULT = [
    ("settings-not-seen", objects(gateway(env=[hidden("HERDGATE_DRAIN__SETTLE_S")]))),
    ("settings-not-seen", objects(gateway(envFrom=SECRET))),
    ("settings-not-seen", objects(gateway(envFrom=[{"configMapRef": {"name": "elsewhere"}}]))),
    ("settings-not-seen", objects(gateway(envFrom=SECRET), settings=replaced('redis = "redis://redis:6379"', ""))),
    ("settings-not-seen", objects(gateway(args=["serve", "--config", "/app/own.toml"]))),
    ("settings-not-seen", objects(gateway(pod={"volumes": [{"name": "settings", "secret": {"secretName": "s"}}]}))),
    ("shell-as-pid-1", objects(gateway(command=["bash", "-e", "-c", "herdgate serve"], args=[]))),
    ("shell-as-pid-1", objects(gateway(command=["sh", "-c", "exec herdgate serve 2>&1 | tee log"], args=[]))),
    ("shell-as-pid-1", objects(gateway(args=["sh", "-c", "herdgate serve"]))),
    ("grace-too-short", objects(gateway(lifecycle=sleep_and_drain(11)))),
    ("grace-too-short", objects(worker("--stop-s", "56", lifecycle=SLEEP_15))),
    ("balancer-cuts-drain", objects(gateway(lifecycle=sleep_and_drain(10)), delay(65))),
    ("balancer-cuts-drain", objects(gateway(), before("front"), *SERVICES)),
    ("balancer-cuts-drain", objects(gateway(), before("not-here"), *SERVICES)),
    ("no-disruption-budget", objects(gateway(), budget(selector=OUT_OF_APP, maxUnavailable=1))),
    ("no-disruption-budget", objects(gateway(), budget(selector=None, maxUnavailable=1))),
    ("readiness-cannot-see-drain", objects(gateway(readinessProbe=ask("/healthz", "admin")))),
    ("readiness-cannot-see-drain", objects(gateway(readinessProbe={"tcpSocket": {"port": "admin"}}))),
    ("shell-as-pid-1", objects(gateway(command=["/bin/sh", "-c"], args=["herdgate serve"]))),
    ("shell-as-pid-1", objects(gateway(command=["bash", "-ec", "exec true; herdgate serve"], args=[]))),
    ("grace-too-short", objects(gateway(pod={"terminationGracePeriodSeconds": 64}))),
    ("grace-too-short", objects(settings=replaced("sigterm_s = 60", "sigterm_s = 71"))),
    ("grace-too-short", objects(gateway(lifecycle=SLEEP_15))),
    ("grace-too-short", objects(worker("--stop-s=80"))),
    ("no-prestop", objects(gateway(lifecycle={}))),
    ("prestop-too-short", objects(gateway(lifecycle=SLEEP_5))),
    ("prestop-too-short", objects(settings=replaced("settle_s = 15", "settle_s = 5"))),
    ("prestop-has-no-control", objects(settings=replaced(', socket = "/run/control.sock"', ""))),
    (
        "deregistration-outlives-prestop",
        objects(gateway(pod={"terminationGracePeriodSeconds": 80}, lifecycle=SLEEP_15), delay(16)),
    ),
    ("no-limit-to-drain", objects(settings=replaced("max_open = 4000", ""))),
    ("drain-too-slow", objects(settings=replaced("max_open = 4000", "max_open = 4500"))),
    ("rollout-too-fast", objects(gateway(spec={"minReadySeconds": 0}))),
    ("rollout-too-fast", objects(gateway(spec=surge(2, 0)))),
    ("balancer-cuts-drain", objects(gateway(), delay(55))),
    ("idle-shorter-than-pings", objects(settings=SETTINGS + "relay = { idle_s = 20 }")),
    ("idle-shorter-than-pings", objects(gateway(), ingress(read="15"))),
    ("idle-shorter-than-pings", objects(gateway(), ingress(balancer="idle_timeout.timeout_seconds=20"))),
    ("idle-close-to-pings", objects(gateway(), ingress(read="30"))),
    ("single-replica", objects(gateway(spec={"replicas": 1}))),
    ("single-replica", objects(gateway(), scaler(minReplicas=1))),
    (
        "rollout-leaves-none",
        objects(gateway(spec=surge(0, 3)), settings=replaced("max_open = 4000", "max_open = 1000")),
    ),
    ("no-disruption-budget", objects(gateway(), {**budget(), "spec": {"selector": {"matchLabels": {"app": "other"}}}})),
    ("disruption-budget-of-no-use", objects(gateway(), budget(maxUnavailable="100%"))),
    ("disruption-budget-of-no-use", objects(gateway(), budget(minAvailable=3))),
    (
        "readiness-cannot-see-drain",
        objects(gateway(readinessProbe=ask("/healthz", "clients"))),
    ),
    ("readiness-cannot-see-drain", objects(gateway(readinessProbe={}))),
    ("liveness-ends-drain", objects(gateway(livenessProbe=ask("/readyz", "admin")))),
    ("probe-out-of-reach", objects(settings=replaced("0.0.0.0:9901", "127.0.0.1:9901"))),
    ("probe-out-of-reach", objects(gateway(livenessProbe={"tcpSocket": {"port": 9000}}))),
    ("replicas-without-fleet", objects(settings=replaced('fleet = { redis = "redis://redis:6379" }', ""))),
    ("scales-by-cpu", objects(gateway(), scaler(metrics=[{"type": "Resource"}]))),
    ("scale-in-drops-many", objects(gateway(), scaler(behavior={}))),
    (
        "scale-in-drops-many",
        objects(gateway(), scaler(behavior={"scaleDown": HALF})),
    ),
]


@pytest.mark.parametrize("documents", WELL.values(), ids=WELL)
def test_nothing_is_found_where_all_is_well(tmp_path: Path, documents: list[Any]) -> None:
    result = checked(tmp_path, documents)
    assert ids(result) == []
    assert result.cases


@pytest.mark.parametrize(("rule", "documents"), ONE_FAULT)
def test_one_fault_is_one_finding(tmp_path: Path, rule: str, documents: list[Any]) -> None:
    assert ids(checked(tmp_path, documents)) == [rule]


def test_every_rule_of_pods_is_shown_to_fire() -> None:
    of_ecs = {"grace-beyond-fargate", "no-early-sign", "sign-outlives-deregistration"}
    assert {rule.id for rule in RULES} == {rule for rule, _ in ONE_FAULT} | of_ecs


def test_every_error_has_numbers_a_reason_and_a_way_out(tmp_path: Path) -> None:
    (finding,) = checked(tmp_path, objects(gateway(pod={"terminationGracePeriodSeconds": 30}))).findings
    assert finding.where == f"{tmp_path}/all.yaml Deployment/gateway"
    assert finding.detail == ("terminationGracePeriodSeconds is 30 s: preStop drains for 60 s + 5 s to spare are 65 s")
    assert finding.reason
    assert finding.fix


def test_timers_of_a_published_outage_are_errors_each_with_its_numbers(tmp_path: Path) -> None:
    """Deregistration 300 s, preStop 15 s, grace 30 s, drain 60 s; then an order that holds."""
    bad = objects(gateway(pod={"terminationGracePeriodSeconds": 30}, lifecycle=SLEEP_15), delay(300))
    found = {each.rule: each.detail for each in checked(tmp_path, bad).findings if each.severity == "error"}
    assert found == {
        "grace-too-short": (
            "terminationGracePeriodSeconds is 30 s: preStop 15 s + sigterm_s 60 s + 5 s to spare are 80 s"
        ),
        "deregistration-outlives-prestop": "the deregistration delay is 300 s, preStop 15 s",
    }
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "sleep 30"]}}}
    good = objects(gateway(pod={"terminationGracePeriodSeconds": 120}, lifecycle=hook), delay(20))
    assert ids(checked(tmp_path, good)) == []


def test_a_short_prestop_of_a_single_replica_is_two_findings(tmp_path: Path) -> None:
    documents = objects(gateway(spec={"replicas": 1, **surge(0, 1)}, lifecycle=SLEEP_5))
    assert ids(checked(tmp_path, documents)) == ["prestop-too-short", "single-replica"]


@pytest.mark.parametrize(("sockets", "detail"), [(6_000, None), (20_000, "200 s, drain.call_s leaves 120 s")])
def test_whether_a_drain_fits_is_said_before_it_begins(tmp_path: Path, sockets: int, detail: str | None) -> None:
    settings = replaced("max_open = 4000", f"max_open = {sockets}").replace("call_s = 60", "call_s = 136")
    pod = {"terminationGracePeriodSeconds": 150}
    result = checked(tmp_path, objects(gateway(pod=pod, spec={"minReadySeconds": 300}), settings=settings))
    assert [each.rule for each in result.findings] == (["drain-too-slow"] if detail else [])
    for finding in result.findings:
        assert detail is not None
        assert detail in finding.detail
        assert "80 s short, 8,000 go together" in finding.detail


def test_pings_are_as_often_as_a_server_behind_says(tmp_path: Path) -> None:
    server = worker(image="uvicorn:1")
    server["spec"]["template"]["spec"]["containers"][0]["args"] = ["uvicorn", "app:app", "--ws-ping-interval", "55"]
    result = checked(tmp_path, objects(gateway(), ingress(read="60"), server))
    (finding,) = result.findings
    assert (finding.rule, finding.severity) == ("idle-close-to-pings", "warning")
    assert "cuts after 60 s without a byte, pings come every 55 s" in finding.detail
