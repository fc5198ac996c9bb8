"""What kustomizations may say, rendered as kubectl renders it; and the one line about what they may not."""

import shutil
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from herdgate_gateway.deployments.kustomize import render
from herdgate_gateway.errors import HerdgateError
from tests.needs import unmet

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, labels: {app: a}, annotations: {keep: "1"}}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
        - name: one
          image: registry:5000/one:1@sha256:0123
          args: [x]
          env: [{name: A, value: "1"}, {name: B, value: "2"}]
          envFrom: [{configMapRef: {name: made}}]
          ports: [{containerPort: 80}]
        - name: two
          image: two
          env: [{name: C, valueFrom: {configMapKeyRef: {name: made, key: k}}}]
      volumes:
        - {name: v, configMap: {name: made}}
        - {name: w, projected: {sources: [{configMap: {name: made}}]}}
---
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {ports: [{name: p, port: 80}, {name: q, port: 81}], selector: {app: a}}
---
apiVersion: example.com/v1
kind: Foreign
metadata: {name: a}
spec: {containers: [{name: one}, {name: two}]}
"""

GENERATED = """
configMapGenerator:
  - name: made
    literals: [k=v, 'tag=<b>&"é"', "empty="]
    files: [file.txt, other=file.txt]
"""

CHANGES = {
    "nothing": "",
    "a namespace": "namespace: there",
    "labels": "labels: [{pairs: {team: x}, includeTemplates: true}, {pairs: {top: only}}]",
    "replicas": "replicas: [{name: a, count: 5}]",
    "an image's tag": "images: [{name: 'registry:5000/one', newTag: '2'}, {name: two, newTag: '3'}]",
    "an image's name": "images: [{name: 'registry:5000/one', newName: elsewhere/one}]",
    "an image's digest": "images: [{name: two, newName: x/two, digest: 'sha256:4567'}]",
    "a plain ConfigMap": "generatorOptions: {disableNameSuffixHash: true}",
    "a merge": """
        patches:
          - patch: |
              apiVersion: apps/v1
              kind: Deployment
              metadata: {name: a, annotations: {more: "2"}}
              spec:
                replicas: null
                template:
                  spec:
                    containers:
                      - {name: two, image: other, env: [{name: D, value: "4"}]}
                      - {name: three, image: three}
                    volumes: [{name: v, $patch: delete}, {name: u, emptyDir: {}}]
    """,
    "a merge of every kind of list": """
        patches:
          - patch: |
              apiVersion: apps/v1
              kind: Deployment
              metadata: {name: a}
              spec:
                template:
                  spec:
                    containers:
                      - {name: one, args: [y, z], ports: [{containerPort: 81}], env: [{name: B, value: "3"}]}
          - patch: |
              apiVersion: v1
              kind: Service
              metadata: {name: a}
              spec: {ports: [{port: 81, targetPort: 8081}]}
    """,
    "a merge into an object of another kind": """
        patches:
          - patch: |
              apiVersion: example.com/v1
              kind: Foreign
              metadata: {name: a}
              spec: {containers: [{name: three}]}
    """,
    "a removal": """
        patches:
          - patch: |
              $patch: delete
              apiVersion: v1
              kind: Service
              metadata: {name: a}
    """,
    "a JSON patch": """
        patches:
          - target: {kind: Deployment|Service, name: a}
            patch: |
              - {op: add, path: /metadata/annotations, value: {a~b/c: "1"}}
              - {op: replace, path: /metadata/annotations/a~0b~1c, value: "2"}
              - {op: test, path: /metadata/name, value: a}
          - target: {version: v1, kind: Service}
            patch: |
              - {op: add, path: /spec/ports/-, value: {name: r, port: 82}}
              - {op: remove, path: /spec/ports/0}
              - {op: add, path: /spec/ports/0, value: {name: s, port: 83}}
    """,
}


def folder(tmp_path: Path, text: str, name: str = "base", resources: str = "[all.yaml]") -> Path:
    place = tmp_path / name
    place.mkdir()
    (place / "all.yaml").write_text(DEPLOYMENT)
    (place / "file.txt").write_text("one\ntwo <é>\u2028\n", encoding="utf-8")
    (place / "kustomization.yaml").write_text(f"resources: {resources}\n{dedent(text)}")
    return place


def in_order(rendered: list[Any]) -> list[Any]:
    return sorted(rendered, key=lambda each: (each["kind"], each["metadata"]["name"]))


def by_kubectl(place: Path) -> list[Any]:
    if shutil.which("kubectl") is None:
        unmet("kubectl")
    done = subprocess.run(["kubectl", "kustomize", place], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_change_is_made_as_kubectl_makes_it(tmp_path: Path, change: str) -> None:
    place = folder(tmp_path, GENERATED + dedent(change))
    assert in_order(render(place)) == in_order(by_kubectl(place))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("behavior", ["merge", "replace"])
def test_change_is_made_over_a_base_as_kubectl_makes_it(tmp_path: Path, change: str, behavior: str) -> None:
    folder(tmp_path, GENERATED)
    generated = f"configMapGenerator: [{{name: made, behavior: {behavior}, literals: [k=w, 'quoted=\"x\"']}}]\n"
    place = folder(tmp_path, generated + dedent(change), "overlay", "[../base]")
    assert in_order(render(place)) == in_order(by_kubectl(place))


FAULTS = {
    "helmCharts: []": "helmCharts is not known here; render it with `kubectl kustomize ",
    "labels: [{pairs: {a: b}, includeSelectors: true}]": "labels.includeSelectors is not known here",
    "generatorOptions: {immutable: true}": "generatorOptions.immutable is not known here",
    "patches: [{patch: '[]', target: {labelSelector: a=b}}]": "patches.target.labelSelector is not known here",
    "patches: [{path: missing.yaml}]": "missing.yaml: cannot be read (No such file or directory)",
    "patches: [{patch: '{kind: Job, metadata: {name: a}}'}]": "the patch of Job a is for nothing that is there",
    "patches: [{patch: '[{op: move, path: /a, from: /b}]', target: {kind: Service}}]": "cannot patch /a",
    "patches: [{patch: '[{op: replace, path: /spec/x, value: 1}]', target: {kind: Service}}]": "cannot patch /spec/x",
    "patches: [{patch: '[{op: test, path: /kind, value: Job}]', target: {kind: Service}}]": "cannot patch /kind",
    "patches: [{patch: '[1]', target: {kind: Service}}]": "cannot patch 1",
    "configMapGenerator: [{name: none, behavior: merge}]": "cannot merge the ConfigMap none",
    "a: [": "is neither YAML nor JSON",
}


@pytest.mark.parametrize(("text", "line"), FAULTS.items())
def test_what_cannot_be_rendered_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(HerdgateError) as raised:
        render(folder(tmp_path, text))
    assert line in str(raised.value)
    assert str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("resource", "line"),
    [
        ("https://example.com/base", "the resource https://example.com/base is not on this machine"),
        ("../none", "the resource ../none is not on this machine"),
        ("../base", "is a resource of itself"),
    ],
)
def test_resource_that_cannot_be_had_is_one_line(tmp_path: Path, resource: str, line: str) -> None:
    with pytest.raises(HerdgateError) as raised:
        render(folder(tmp_path, "", resources=f"['{resource}']"))
    assert line in str(raised.value)


def test_folder_without_a_kustomization_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(HerdgateError, match=r"plain: is no kustomization; it has no file kustomization\.yaml"):
        render(folder(tmp_path, "", resources="[../plain]"))
