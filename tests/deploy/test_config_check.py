"""`herdgate config check` with deployments: what it prints, and the exit code."""

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from herdgate_gateway.config import config
from herdgate_gateway.errors import HerdgateError
from tests.deploy.manifests import SETTINGS, gateway, objects, worker, write


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HERDGATE_"):
            monkeypatch.delenv(name)


def check(*arguments: object, **environ: str) -> Result:
    return CliRunner().invoke(config, ["check", *map(str, arguments)], env=environ)


def toml(folder: Path, text: str) -> Path:
    file = folder / "herdgate.toml"
    file.write_text(text)
    return file


def test_what_is_well_is_a_line_each_with_its_timers(tmp_path: Path) -> None:
    done = check(write(tmp_path, [*objects(), worker()]))
    assert done.exit_code == 0
    gateways, workers = done.stdout.splitlines()
    drain = "3 of them, 4,000 sockets each drain in 56 s at 100/s, call_s 60 s, terminationGracePeriodSeconds 75 s"
    assert gateways == f"ok: {tmp_path}/all.yaml Deployment/gateway: {drain}"
    stop = "3 of them, stop_s 30 s, terminationGracePeriodSeconds 75 s"
    assert workers == f"ok: {tmp_path}/all.yaml StatefulSet/worker: {stop}"


def test_an_error_is_told_with_its_reason_and_way_out(tmp_path: Path) -> None:
    done = check(write(tmp_path, objects(gateway(pod={"terminationGracePeriodSeconds": 30}))))
    assert done.exit_code == 1
    told, why, fix = done.stdout.splitlines()
    assert told.startswith(f"{tmp_path}/all.yaml Deployment/gateway: error grace-too-short: ")
    assert why.startswith("  why: ")
    assert fix.startswith("  fix: ")


def test_warnings_alone_are_no_failure(tmp_path: Path) -> None:
    done = check(write(tmp_path, objects(settings=SETTINGS.replace("max_open = 4000", ""))))
    assert "warning no-limit-to-drain" in done.stdout
    assert done.exit_code == 0


def test_settings_beside_a_deployment_are_those_of_gateways_that_show_none(tmp_path: Path) -> None:
    settings = toml(tmp_path, SETTINGS.replace("/run/", f"{tmp_path}/") + 'workers = ["ws://10.0.0.1:9001"]\n')
    deployment = write(tmp_path, [each for each in objects() if each["kind"] != "ConfigMap"])
    done = check(settings, deployment)
    own, told = done.stdout.splitlines()
    assert own == "ok: 200 admissions per second, 1 worker, 1 route, 1 listener, fleet default at redis:6379"
    assert "4,000 sockets each drain in 56 s" in told
    assert check(deployment, "--config", settings).stdout == done.stdout
    assert check(deployment, HERDGATE_CONFIG=str(settings)).stdout == done.stdout


def test_settings_of_a_container_hold_over_those_beside_it(tmp_path: Path) -> None:
    settings = toml(tmp_path, 'rate = 5\nworkers = ["ws://10.0.0.1:9001"]\n')
    assert "4,000 sockets each" in check(settings, write(tmp_path, objects())).stdout


def test_variables_and_options_hold_over_the_file_of_a_container(tmp_path: Path) -> None:
    told = gateway(args=["serve", "--rate=400"], env=[{"name": "HERDGATE_MAX_OPEN", "value": "8000"}])
    assert "8,000 sockets each drain in 56 s at 200/s" in check(write(tmp_path, objects(told))).stdout


def test_a_file_may_be_mounted_alone_or_under_another_name(tmp_path: Path) -> None:
    one = gateway(
        args=["serve", "--config", "/conf/gateway.toml"],
        pod={"volumes": [{"name": "settings", "configMap": {"name": "settings"}}]},
        volumeMounts=[{"name": "settings", "mountPath": "/conf/gateway.toml", "subPath": "herdgate.toml"}],
    )
    renamed = gateway(
        env=[{"name": "HERDGATE_CONFIG", "value": "/conf/other.toml"}],
        volumeMounts=[{"name": "settings", "mountPath": "/conf"}],
    )
    items = [{"key": "herdgate.toml", "path": "other.toml"}]
    renamed["spec"]["template"]["spec"]["volumes"][0]["configMap"]["items"] = items
    for each in (one, renamed):
        assert "4,000 sockets each" in check(write(tmp_path, objects(each))).stdout


def test_variables_of_config_maps_count_and_those_of_secrets_are_not_known(tmp_path: Path) -> None:
    variables = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}, "data": {"MAX_OPEN": "2000"}}
    secret = {"name": "HERDGATE_FLEET__REDIS", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    told = gateway(envFrom=[{"prefix": "HERDGATE_", "configMapRef": {"name": "more"}}], env=[secret])
    settings = SETTINGS.replace('fleet = { redis = "redis://redis:6379" }', "")
    done = check(write(tmp_path, objects(told, variables, settings=settings)))
    assert done.exit_code == 0
    assert "2,000 sockets each" in done.stdout


def test_faults_in_settings_of_a_container_are_one_line_each(tmp_path: Path) -> None:
    done = check(write(tmp_path, objects(settings="raet = 5\nburst = 0\n")))
    assert done.exit_code == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line.partition(" Deployment/gateway: ")[2].partition(":")[0] for line in lines] == ["burst", "raet"]
    assert all("herdgate.toml of ConfigMap settings" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.json", "{", "is neither YAML nor JSON"),
        ("a.yaml", "", "is empty"),
        ("a.yaml", "some: thing", "is nothing known here"),
        ("a.yaml", "[1, 2]", "is nothing known here"),
        ("a.yaml", "apiVersion: v1\nkind: Service\n", "has no gateway and no worker in it"),
        ("a.json", '{"Attributes": [{"Key": "k", "Value": "v"}]}', "has no gateway and no worker in it"),
        ("a.yaml", "\xff\x00", "is neither YAML nor JSON"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, name: str, text: str, line: str) -> None:
    (tmp_path / name).write_text(text)
    done = check(tmp_path / name)
    assert done.exit_code == 2
    (told,) = done.stderr.splitlines()
    assert told.startswith(f"{tmp_path / name}")
    assert line in told


def test_files_that_are_missing_and_folders_without_manifests_are_told(tmp_path: Path) -> None:
    done = check(tmp_path / "none.yaml", tmp_path)
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        f"{tmp_path}/none.yaml: cannot be read (No such file or directory); give a file of text that can",
        f"{tmp_path}: has neither a kustomization nor manifests in it; give a folder that has",
    ]


def test_folder_of_manifests_is_read_as_one(tmp_path: Path) -> None:
    for position, each in enumerate(objects()):
        write(tmp_path, [each], f"{position}.yml")
    assert check(tmp_path).exit_code == 0


def test_list_of_objects_is_what_is_in_it(tmp_path: Path) -> None:
    told: list[Any] = [{"apiVersion": "v1", "kind": "List", "items": objects()}]
    assert check(write(tmp_path, told)).exit_code == 0


def test_two_files_of_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HerdgateError, match=r"name one file of settings"):
        CliRunner().invoke(config, ["check", "a.toml", "b.toml"], catch_exceptions=False)
