"""k8s/ as it is shipped: rendered as kubectl does, valid, well, and each mutation of it is one finding."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from herdgate_gateway.deployments.checking import check_deployments
from herdgate_gateway.deployments.kustomize import render
from tests.deploy.manifests import ids
from tests.needs import unmet

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ["base", "overlays/local", "overlays/prod"]
BY_OTHERS = {"ServiceMonitor"}

GATEWAY, SCALING, SETTINGS = "base/gateway.yaml", "base/gateway-scaling.yaml", "base/herdgate.toml"

MUTATIONS = [
    (GATEWAY, "terminationGracePeriodSeconds: 75", "terminationGracePeriodSeconds: 60", "grace-too-short"),
    (GATEWAY, r'args: \["serve"\]', 'command: ["sh", "-c", "herdgate serve"]', "shell-as-pid-1"),
    (GATEWAY, r" {10}lifecycle:\n.*?(?= {10}resources:)", "", "no-prestop"),
    (GATEWAY, r'\["herdgate", "drain", "--wait"\]', '["herdgate", "drain"]', "prestop-too-short"),
    (
        GATEWAY,
        r"/readyz\n              port: admin",
        "/healthz\n              port: clients",
        "readiness-cannot-see-drain",
    ),
    (GATEWAY, r" {10}readinessProbe:\n.*?(?= {10}livenessProbe:)", "", "readiness-cannot-see-drain"),
    (GATEWAY, r"(livenessProbe:\n.*?)/healthz", r"\1/readyz", "liveness-ends-drain"),
    (GATEWAY, "minReadySeconds: 45", "minReadySeconds: 5", "rollout-too-fast"),
    (GATEWAY, "maxSurge: 1", "maxSurge: 3", "rollout-too-fast"),
    (SCALING, "maxUnavailable: 1", "maxUnavailable: 3", "disruption-budget-of-no-use"),
    (SCALING, r"\A.*?---\n", "", "no-disruption-budget"),
    (SCALING, "minReplicas: 3", "minReplicas: 1", "single-replica"),
    (SCALING, "value: 1\n", "value: 4\n", "scale-in-drops-many"),
    (SETTINGS, "max_open = 4000", "max_open = 9000", "drain-too-slow"),
    (SETTINGS, "settle_s = 15", "settle_s = 0", "prestop-too-short"),
    (SETTINGS, "sigterm_s = 60", "sigterm_s = 120", "grace-too-short"),
    (SETTINGS, "call_s = 60", "call_s = 120", "grace-too-short"),
    (SETTINGS, "0.0.0.0:9901", "127.0.0.1:9901", "probe-out-of-reach"),
    (SETTINGS, 'socket = "/run/herdgate/control.sock"', "", "prestop-has-no-control"),
    ("base/kustomization.yaml", "      - HERDGATE_FLEET__REDIS=redis://redis:6379/0\n", "", "replicas-without-fleet"),
    ("base/worker.yaml", 'value: "60"', 'value: "90"', "grace-too-short"),
    ("base/worker.yaml", "replicas: 3", "replicas: 1", "single-replica"),
    ("overlays/prod/ingress.yaml", "timeout_seconds=60", "timeout_seconds=30", "balancer-cuts-drain"),
    ("overlays/prod/ingress.yaml", "timeout_seconds=120", "timeout_seconds=10", "idle-shorter-than-pings"),
]


def in_order(rendered: list[Any]) -> list[Any]:
    return sorted(rendered, key=lambda each: (each["kind"], each["metadata"]["name"]))


def by_kubectl(folder: Path) -> list[Any]:
    if shutil.which("kubectl") is None:
        unmet("kubectl")
    done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_is_rendered_as_kubectl_does(folder: str) -> None:
    path = ROOT / "k8s" / folder
    assert in_order(render(path)) == in_order(by_kubectl(path))


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_holds_valid_objects(folder: str) -> None:
    rendered = [each for each in render(ROOT / "k8s" / folder) if each["kind"] not in BY_OTHERS]
    assert len(rendered) >= 15
    for each in rendered:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_is_well(folder: str) -> None:
    result = check_deployments([ROOT / "k8s" / folder], None)
    assert ids(result) == []
    assert [case.workload.role for case in result.cases] == ["gateway", "worker"]


@pytest.mark.parametrize(("file", "old", "new", "rule"), MUTATIONS)
def test_mutation_is_one_finding(tmp_path: Path, file: str, old: str, new: str, rule: str) -> None:
    shutil.copytree(ROOT / "k8s", tmp_path / "k8s")
    place = tmp_path / "k8s" / file
    changed, count = re.subn(old, new, place.read_text(), count=1, flags=re.DOTALL)
    assert count == 1
    place.write_text(changed)
    folder = "overlays/prod" if file.startswith("overlays") else "base"
    assert ids(check_deployments([tmp_path / "k8s" / folder], None)) == [rule]


def containers(folder: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    found = []
    for each in render(ROOT / "k8s" / folder):
        pod = each.get("spec", {}).get("template", {}).get("spec", {})
        found += [(pod, container) for container in pod.get("containers", ())]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_nobody_may_do_more_than_needed(folder: str) -> None:
    found = containers(folder)
    assert len(found) >= 2
    for pod, container in found:
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        is_ours = container["image"].rpartition("/")[2].startswith("herdgate")
        assert not is_ours or container["securityContext"]["readOnlyRootFilesystem"]


def test_app_of_the_base_can_be_imported(tmp_path: Path) -> None:
    shutil.copy(ROOT / "k8s" / "base" / "app.py", tmp_path)
    import_it = "import app; print(app.app.routes[0].path)"
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "python", "-c", import_it], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "/chat/{room}\n"


def test_settings_are_those_of_the_image_where_they_are_put() -> None:
    for folder in FOLDERS:
        gateway = next(each for each in render(ROOT / "k8s" / folder) if each["kind"] == "Deployment")
        mounts = gateway["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        assert "/etc/herdgate" in [each["mountPath"] for each in mounts]
