"""Deployments for tests, written to files and checked as `herdgate config check` does.

`gateway()` is well in every respect; a test changes one thing of it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from herdgate_gateway.deployments.checking import Checked, check_deployments

__all__ = ["SETTINGS", "budget", "checked", "container", "gateway", "ids", "objects", "worker", "write"]

SETTINGS = """
listen = ["0.0.0.0:8000"]
rate = 200
max_open = 4000
admin = { listen = "0.0.0.0:9901", socket = "/run/control.sock" }
fleet = { redis = "redis://redis:6379" }
drain = { settle_s = 15, call_s = 60, sigterm_s = 60, sign_s = 60 }
"""

LABELS = {"app": "gateway"}


def container(**changes: Any) -> dict[str, Any]:
    """Of a gateway."""
    return {
        "name": "gateway",
        "image": "registry.example/herdgate:1.0",
        "args": ["serve"],
        "ports": [{"name": "clients", "containerPort": 8000}, {"name": "admin", "containerPort": 9901}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "admin"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 9901}},
        "lifecycle": {"preStop": {"exec": {"command": ["herdgate", "drain", "--wait"]}}},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/herdgate"}],
        **changes,
    }


def gateway(*, pod: Mapping[str, Any] | None = None, spec: Mapping[str, Any] | None = None, **changes: Any) -> Any:
    """A Deployment.

    Args:
        pod, spec, changes: over what stands in its pod, itself, and its container.
    """
    template = {
        "terminationGracePeriodSeconds": 75,
        "volumes": [{"name": "settings", "configMap": {"name": "settings"}}],
        "containers": [container(**changes)],
        **(pod or {}),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "gateway"},
        "spec": {
            "replicas": 3,
            "minReadySeconds": 45,
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": LABELS}, "spec": template},
            **(spec or {}),
        },
    }


def budget(**spec: Any) -> Any:
    """A PodDisruptionBudget of the gateways."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "gateway"},
        "spec": {"selector": {"matchLabels": LABELS}, **(spec or {"maxUnavailable": 1})},
    }


def worker(*words: str, grace_s: int = 75, image: str = "herdgate", **changes: Any) -> Any:
    """A StatefulSet of workers, with its budget's labels."""
    inside = {"name": "worker", "image": image, "args": ["worker", "app:app", *words], **changes}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "worker"},
        "spec": {
            "replicas": 3,
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {"terminationGracePeriodSeconds": grace_s, "containers": [inside]},
            },
        },
    }


def objects(workload: Any | None = None, *others: Any, settings: str = SETTINGS) -> list[Any]:
    """A workload with its settings, its budget and what else is given."""
    settings_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings"},
        "data": {"herdgate.toml": settings},
    }
    has_budget = any(each["kind"] == "PodDisruptionBudget" for each in others)
    return [settings_map, workload or gateway(), *others, *([] if has_budget else [budget()])]


def write(folder: Path, documents: list[Any], name: str = "all.yaml") -> Path:
    """A file of documents."""
    file = folder / name
    file.write_text(yaml.safe_dump_all(documents))
    return file


def checked(folder: Path, documents: list[Any], *more: Path, own: Path | None = None) -> Checked:
    """Documents in one file, and other files, judged."""
    return check_deployments([write(folder, documents), *more], own)


def ids(result: Checked) -> list[str]:
    """The rules that found something; everything could be read."""
    assert result.faults == ()
    return [each.rule for each in result.findings]
