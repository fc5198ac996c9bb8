"""Files that nobody means well with, or that were broken on the way: one line about each, never a traceback."""

import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from herdgate_gateway.deployments.checking import Checked, check_deployments
from herdgate_gateway.deployments.documents import MOST_BYTES, read_documents
from herdgate_gateway.deployments.report import lines
from tests.deploy.manifests import budget, gateway, objects, worker, write
from tests.servers import ROOT

WORTHLESS: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        10**400,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "²",
        "9" * 400 + "%",
        "-5%",
        "nan",
        "\x00",
        "(",
    ),
    *([], [None], [[]], [{}], ["x"], {}, {"": None}, {"Ref": ["x"]}, {"Fn::If": []}, {"Fn::Sub": [1]}, {1: 2}),
]
"""What stands where something else should."""

ROLLOUT = {**gateway(spec={"strategy": {"canary": {"maxSurge": 1}}}), "kind": "Rollout"}
SCALED = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "spec": {"scaleTargetRef": {"name": "gateway"}, "triggers": [{"type": "cpu"}], "minReplicaCount": 2},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "front"},
    "spec": {"selector": {"app": "gateway"}},
}
INGRESS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "Ingress",
    "metadata": {"annotations": {"alb.ingress.kubernetes.io/target-group-attributes": "a=1"}},
    "spec": {"rules": [{"http": {"paths": [{"backend": {"service": {"name": "front"}}}]}}]},
}
LIMITED = budget(
    selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["gateway"]}]}, minAvailable=1
)
TASK = {"family": "x", "containerDefinitions": [{"name": "g", "image": "herdgate", "environment": [{"name": "A"}]}]}
MANIFESTS = [*objects(gateway(), worker(), SERVICE, INGRESS, SCALED), ROLLOUT, LIMITED]
GROUP = {"Attributes": [{"Key": "deregistration_delay.timeout_seconds", "Value": "300"}]}


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All of a tree, its own included."""
    yield path
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def broken(tree: Any, chance: random.Random) -> Any:
    """The tree with something worthless at one place or two."""
    tree = copy.deepcopy(tree)
    for _ in range(chance.choice([1, 1, 2])):
        path = chance.choice([*places(tree)])
        if not path:
            return chance.choice(WORTHLESS)
        at = tree
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = copy.deepcopy(chance.choice(WORTHLESS))
    return tree


def put(file: Path, documents: Any) -> Path:
    """A file of documents, or of what was made of them."""
    file.write_text(yaml.safe_dump_all(documents if isinstance(documents, list) else [documents]))
    return file


def told(result: Checked) -> list[str]:
    """All lines of it, each of them one."""
    found = [*lines(result), *result.faults]
    assert found
    assert all(line.isprintable() for line in found)
    return found


def fault(file: Path) -> str:
    """The one line about a file."""
    (line,) = told(check_deployments([file], None))
    assert line.startswith(str(file))
    return line.removeprefix(str(file))


@pytest.mark.parametrize("seed", range(300))
def test_manifests_tasks_and_attributes_that_are_broken_are_lines(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    documents = chance.choice([MANIFESTS, [{"apiVersion": "v1", "kind": "List", "items": MANIFESTS}], [TASK], [[TASK]]])
    file = put(tmp_path / "a.yaml", broken(documents, chance))
    (tmp_path / "group.json").write_text(json.dumps(broken(GROUP, chance)))
    told(check_deployments([file, tmp_path / "group.json"], None))


@pytest.mark.parametrize("seed", range(100))
def test_templates_that_are_broken_are_lines(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    (tree,) = read_documents(ROOT / "deploy" / "aws" / f"{chance.choice(['gateways', 'workers'])}.yaml")
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(broken(tree, chance)))
    told(check_deployments([tmp_path / "t.yaml"], None))


@pytest.mark.parametrize("seed", range(100))
def test_kustomizations_that_are_broken_are_lines(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    shutil.copytree(ROOT / "k8s", tmp_path / "k8s")
    folder = tmp_path / "k8s" / chance.choice(["base", "overlays/local", "overlays/prod"])
    file = chance.choice(sorted(folder.glob("*.yaml")) + [folder / "kustomization.yaml"] * 8)
    put(file, broken([*yaml.safe_load_all(file.read_text())], chance))
    told(check_deployments([folder], None))


ALIASES = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
TEXTS = [
    ("a key that stands twice", "apiVersion: v1\nspec: {}\nspec: {}\n", ", line 2: .*the key 'spec' stands twice"),
    ("so in JSON", '{"a": [{"b": 1,\n"b": 2}]}', ", line 1: .*the key 'b' stands twice"),
    ("aliases of aliases", f"a0: &a0 [x]\n{ALIASES}", r", line \d+: .*more than 2,000,000 values"),
    ("what is in itself", "Resources: &r\n  T: {Properties: *r}\n", ", line 1: .*is in itself"),
    ("a tag of Python", "!!python/object/apply:os.system [exit]", ", line 1: .*could not determine a constructor"),
    ("brackets", "[" * 100_000, ".*: is neither YAML nor JSON"),
    ("blocks", "- " * 50_000, ".*: is neither YAML nor JSON"),
    ("a number of 5,000 digits", "9" * 5_000, ": is neither YAML nor JSON"),
]


@pytest.mark.parametrize(("text", "line"), [each[1:] for each in TEXTS], ids=[each[0] for each in TEXTS])
def test_texts_that_say_more_than_they_seem_to_are_refused(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert re.match(line, fault(tmp_path / "a.yaml"))


def test_keys_that_a_merge_brings_and_an_alias_that_is_used_twice_are_no_fault(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x: &x {a: 1, b: 2}\ny: {<<: *x, a: 3}\nz: *x\n")
    assert read_documents(tmp_path / "a.yaml") == [
        {"x": {"a": 1, "b": 2}, "y": {"a": 3, "b": 2}, "z": {"a": 1, "b": 2}}
    ]


def test_dates_are_texts_as_to_kubernetes(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("built: 2026-11-31\nat: 2026-11-30T10:00:00Z\n")
    assert read_documents(tmp_path / "a.yaml") == [{"built": "2026-11-31", "at": "2026-11-30T10:00:00Z"}]


def test_pipes_devices_and_files_that_are_too_large_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "it is no file" in fault(tmp_path / "pipe.yaml")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    assert "it is no file" in fault(tmp_path / "zero.json")
    (tmp_path / "large.yaml").write_bytes(b"#" * (MOST_BYTES + 1))
    assert "it has more than 16 MiB" in fault(tmp_path / "large.yaml")


def test_links_that_lead_in_a_circle_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("a.yaml")
    assert "Too many levels of symbolic links" in fault(tmp_path / "a.yaml")
    (tmp_path / "kustomization.yaml").write_text("resources: [up]")
    (tmp_path / "up").symlink_to(tmp_path)
    (line,) = told(check_deployments([tmp_path], None))
    assert "is a resource of itself" in line


def test_names_cannot_move_the_cursor_or_begin_a_line(tmp_path: Path) -> None:
    deployment = gateway(pod={"terminationGracePeriodSeconds": 9})
    deployment["metadata"]["name"] = "\x1b[2Jx\n::error::y\u202e"
    first, *_ = told(check_deployments([write(tmp_path, objects(deployment))], None))
    assert "Deployment/\\x1b[2Jx\\n::error::y\\u202e: error grace-too-short" in first


def test_stdout_that_is_closed_is_no_traceback(tmp_path: Path) -> None:
    file = write(tmp_path, objects())
    command = [f"{Path(sys.executable).parent}/herdgate", "config", "check", str(file)]
    for stdout in ("| true", ">&-"):
        shell = ["sh", "-c", f'"$@" {stdout}', "sh", *command]
        done = subprocess.run(shell, capture_output=True, text=True, check=False, timeout=60)
        assert done.stderr == ""
