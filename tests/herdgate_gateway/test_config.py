"""`herdgate config show` and `herdgate config check`: what they print, and the exit code."""

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest
import trustme
from typer.testing import CliRunner, Result

from herdgate_gateway.config import config
from herdgate_gateway.settings import load

FULL = """
listen = ["127.0.0.1:8000", "[::1]:8000"]
workers = ["ws://127.0.0.1:9001"]
rate = 500
secrets = ["a secret of enough bytes"]
allowed_origins = ["https://a.example"]
health_path = "off"
[admin]
token = "a token to control with"
socket = "/run/herd \\"gate\\" \\\\ \u00e4 \\u007f.sock"
[relay]
idle_s = 60
[[routes]]
name = "chat"
paths = ["/chat/*"]
statuses = { rate = 503, full = 429 }
client = { rate = 5, burst = 10 }
anonymous = { open = 1 }
client_key = { claim = "sub" }
connection_id = { query = "id" }
auth.jwt = { keys = "https://id.example/jwks", from = "query" }
[[routes]]
name = "rest"
enforce = false
connection_id = { path = 2 }
auth = { url = "http://auth.example/" }
"""


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HERDGATE_"):
            monkeypatch.delenv(name)


def run(*arguments: str, environ: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(config, arguments, env=environ)


def write(folder: Path, text: str) -> str:
    file = folder / "herdgate.toml"
    file.write_text(text)
    return str(file)


def servable(folder: Path, text: str = "") -> str:
    return write(folder, 'rate = 5\nworkers = ["ws://127.0.0.1:9001"]\n' + text)


def test_show_prints_every_value_with_its_source(tmp_path: Path) -> None:
    file = write(tmp_path, FULL)
    done = run("show", file, environ={"HERDGATE_BURST": "7", "HERDGATE_ADMIN__LISTEN": "off"})
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    for line in (
        f"rate = 500.0  # file {file}",
        "burst = 7.0  # env HERDGATE_BURST",
        f'health_path = "off"  # file {file}',
        'listen = "off"  # env HERDGATE_ADMIN__LISTEN',
        "hold_s = 1.5  # default",
        "# certificate is not set  # default",
        f"statuses = {{rate = 503, full = 429}}  # file {file}",
        f'from = "query"  # file {file}',
    ):
        assert line in lines


def test_what_show_prints_can_be_loaded_again(tmp_path: Path) -> None:
    file = write(tmp_path, FULL)
    shown = run("show", file).stdout
    (tmp_path / "again.toml").write_text(
        shown.replace('["**********"]', '["a secret of enough bytes"]').replace(
            'token = "**********"', 'token = "a token to control with"'
        )
    )
    again = load({}, tmp_path / "again.toml", {})
    assert again.model_dump() == load({}, Path(file), {}).model_dump()


def test_defaults_can_be_loaded_again(tmp_path: Path) -> None:
    again = load({}, Path(write(tmp_path, run("show").stdout)), {})
    assert again.model_dump() == load({}, None, {}).model_dump()


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_show_masks_secrets(tmp_path: Path, options: list[str]) -> None:
    shown = run("show", write(tmp_path, FULL), *options).stdout
    assert "secret of enough" not in shown
    assert "token to control" not in shown
    assert "**********" in shown


def test_show_as_json_has_the_same_values_and_sources(tmp_path: Path) -> None:
    file = write(tmp_path, FULL)
    shown = json.loads(run("show", file, "--json").stdout)
    as_toml = tomllib.loads(run("show", file).stdout)
    assert shown["settings"]["rate"] == as_toml["rate"] == 500
    assert shown["settings"]["health_path"] is None
    assert shown["settings"]["admin"]["socket"] == as_toml["admin"]["socket"]
    assert shown["settings"]["routes"][0]["client"] == {
        "rate": 5,
        "burst": 10,
        "open": None,
        "scope": "process",
    }
    assert shown["sources"]["routes[0].client.rate"] == f"file {file}"
    assert shown["sources"] == dict(load({}, Path(file), {}).sources)


def test_file_may_be_named_in_the_environment(tmp_path: Path) -> None:
    file = servable(tmp_path)
    assert f"rate = 5.0  # file {file}" in run("show", environ={"HERDGATE_CONFIG": file}).stdout
    assert run("check", environ={"HERDGATE_CONFIG": file}).exit_code == 0


@pytest.mark.parametrize("command", ["show", "check"])
def test_file_may_be_named_by_the_option_of_other_commands(tmp_path: Path, command: str) -> None:
    file = servable(tmp_path)
    assert run(command, "--config", file, environ={"HERDGATE_CONFIG": "missing"}).stdout == run(command, file).stdout
    assert "raet" in run(command, write(tmp_path, "raet = 5\n"), "--config", file).stderr


@pytest.mark.parametrize("command", ["show", "check"])
def test_faults_are_one_line_each_and_exit_code_2(tmp_path: Path, command: str) -> None:
    file = write(tmp_path, "raet = 5\nburst = 0\n")
    done = run(command, file)
    assert done.exit_code == 2
    assert done.stdout == ""
    burst, raet = done.stderr.splitlines()
    assert burst.startswith("burst: got 0; write a number of admissions, from 1 ")
    assert raet == f"raet: got a name that is no setting; did you mean rate? (file {file})"


def test_check_says_ok_in_one_line(tmp_path: Path) -> None:
    done = run("check", servable(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "ok: 5 admissions per second, 1 worker, 1 route, 1 listener\n")


def test_check_names_the_fleet(tmp_path: Path) -> None:
    done = run("check", servable(tmp_path, '[fleet]\nredis = "redis://:hidden@10.0.0.5"\nname = "chat"\n'))
    expected = "ok: 5 admissions per second, 1 worker, 1 route, 1 listener, fleet chat at 10.0.0.5:6379\n"
    assert (done.exit_code, done.stdout) == (0, expected)


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile"])
def test_check_looks_for_the_files_of_the_fleet(tmp_path: Path, option: str) -> None:
    def check() -> Result:
        return run("check", servable(tmp_path, f'[fleet]\nredis = "rediss://a?{option}={tmp_path}/f.pem"\n'))

    assert f"{tmp_path}/f.pem for {option}"[:60] in check().stderr
    assert "fleet.redis: got " in check().stderr
    assert "No such file or directory" in check().stderr
    (tmp_path / "f.pem").write_text("no certificate")
    assert check().exit_code == 2
    assert "in PEM" in check().stderr
    trustme.CA().issue_cert("a").private_key_and_cert_chain_pem.write_to_path(tmp_path / "f.pem")
    assert check().exit_code == 0


def test_settings_of_a_fleet_are_shown_where_there_is_one(tmp_path: Path) -> None:
    assert 'fail = "local_share"' not in run("show", servable(tmp_path)).stdout
    assert 'fail = "local_share"' in run("show", servable(tmp_path, '[fleet]\nredis = "redis://a"\n')).stdout


def test_check_asks_for_what_serving_needs() -> None:
    done = run("check")
    assert done.exit_code == 2
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["rate", "workers"]


def test_check_looks_for_files(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    file = servable(
        tmp_path,
        f"""
        listen = ["unix:{missing}/data.sock"]
        [admin]
        listen = "unix:{missing}/admin.sock"
        socket = "{missing}/control.sock"
        [tls]
        certificate = "{missing}/c.pem"
        key = "{missing}/k.pem"
        [[routes]]
        name = "a"
        auth.jwt.keys = "{missing}/keys.json"
        """,
    )
    done = run("check", file)
    assert done.exit_code == 2
    fields = ["tls.certificate", "tls.key", "routes[0].auth.jwt.keys", "listen", "admin.listen", "admin.socket"]
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == fields
    assert all(str(missing)[:40] in line for line in done.stderr.splitlines())


def test_check_reads_certificate_and_key(tmp_path: Path) -> None:
    authority = trustme.CA()
    one, other = authority.issue_cert("localhost"), authority.issue_cert("localhost")
    one.cert_chain_pems[0].write_to_path(tmp_path / "c.pem")
    one.private_key_pem.write_to_path(tmp_path / "k.pem")
    other.private_key_pem.write_to_path(tmp_path / "other.pem")

    def check(key: str) -> Result:
        text = f'[tls]\ncertificate = "{tmp_path}/c.pem"\nkey = "{tmp_path}/{key}"\n'
        return run("check", servable(tmp_path, text))

    assert check("k.pem").exit_code == 0
    done = check("other.pem")
    assert done.exit_code == 2
    assert done.stderr.startswith("tls.certificate: got ")
    assert len(done.stderr.splitlines()) == 1


def test_check_refuses_a_locked_key_without_asking_for_its_password(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "c.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "k.pem")
    lock = ["openssl", "pkey", "-in", "k.pem", "-aes256", "-passout", "pass:hunter2", "-out", "locked.pem"]
    subprocess.run(lock, cwd=tmp_path, check=True, capture_output=True)
    text = f'[tls]\ncertificate = "{tmp_path}/c.pem"\nkey = "{tmp_path}/locked.pem"\n'
    done = run("check", servable(tmp_path, text))
    assert done.exit_code == 2
    assert "without a password" in done.stderr


def test_check_reads_key_files(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"keys": []}')
    text = f'[[routes]]\nname = "a"\nauth.jwt.keys = "{tmp_path}/keys.json"\n'
    done = run("check", servable(tmp_path, text))
    assert done.exit_code == 2
    assert done.stderr.startswith("routes[0].auth.jwt.keys: got ")
