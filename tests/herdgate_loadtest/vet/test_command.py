"""`herdgate vet` from the outside: options, output, exit codes, and what it needs."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.herdgate_loadtest.vet.vetting import SOUND, run_vet

ROOT = Path(__file__).parents[3]
UNSAFE = {"client_id": "fixed", "initial_interval_ms": 200, "multiplier": 1.0, "use_jitter": False, "max_retries": 4}
SAFE = {"client_id": "Zürich", "initial_interval_ms": 1000, "multiplier": 2.0, "use_jitter": True, "max_retries": 4}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Paths by verdict."""
    contents: dict[str, Any] = {"safe": SAFE, "unsafe": UNSAFE, "unreadable": {"multiplier": "2"}}
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return {name: str(tmp_path / f"{name}.json") for name in contents}


def test_the_examples_are_unsafe_and_safe_with_warnings(files: dict[str, str]) -> None:
    unsafe, safe = run_vet(files["unsafe"]), run_vet(files["safe"])
    assert (unsafe.returncode, safe.returncode) == (1, 0)
    assert b"error no-jitter" in unsafe.stdout
    assert b"warning cap-too-low" in safe.stdout
    assert b" error " not in safe.stdout
    assert unsafe.stderr + safe.stderr == b""


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["safe"], 0),
        (["unsafe"], 1),
        (["unreadable"], 2),
        (["safe", "unsafe"], 1),
        (["unreadable", "safe", "unsafe"], 2),
    ],
)
def test_the_worst_of_several_files_is_the_exit_code_and_each_has_its_verdict(
    files: dict[str, str], names: list[str], code: int
) -> None:
    finished = run_vet(*(files[name] for name in names), "--json")
    assert finished.returncode == code
    assert [each["verdict"] for each in json.loads(finished.stdout)["clients"]] == names


def test_json_is_utf_8_in_any_locale(files: dict[str, str]) -> None:
    finished = run_vet(files["safe"], "--json", env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert "Zürich".encode() in finished.stdout
    assert json.loads(finished.stdout.decode("utf-8"))["clients"][0]["client_id"] == "Zürich"


def test_text_is_utf_8_in_any_locale_too(files: dict[str, str]) -> None:
    finished = run_vet(files["safe"], env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert "(Zürich): safe".encode() in finished.stdout


def test_junit_goes_to_standard_output(files: dict[str, str]) -> None:
    finished = run_vet(files["unsafe"], files["unreadable"], "--junit")
    root = ET.fromstring(finished.stdout)
    assert (finished.returncode, root.tag, root.get("errors")) == (2, "testsuites", "1")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", json.dumps({"net": {"ws": SOUND}})),
        ("yaml", yaml.safe_dump({"net": {"ws": SOUND}})),
        ("toml", '[net.ws]\nuse_jitter = true\nmax_interval_ms = 30000\nreset_on = "message"\n'),
    ],
)
def test_standard_input_has_a_format_and_a_section(form: str, text: str) -> None:
    finished = run_vet("-", "--format", form, "--key", "net.ws", stdin=text.encode())
    assert finished.returncode == 0, finished.stdout
    assert finished.stdout.startswith(b"standard input: safe")


def test_an_env_file_has_a_prefix(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("WS_MULTIPLIER=1\nWS_USE_JITTER=false\nDB_MAX_RETRIES=3\n")
    assert run_vet(str(tmp_path / ".env")).returncode == 2
    assert run_vet(str(tmp_path / ".env"), "--key", "WS_").returncode == 1


def test_the_environment_of_the_process_is_vetted() -> None:
    env = {"CHAT_WS_MULTIPLIER": "2", "CHAT_WS_MAX_INTERVAL_MS": "1000", "CHAT_WS_USE_JITTER": "true"}
    finished = run_vet("--env", "CHAT_WS_", env=env)
    assert finished.returncode == 1
    assert finished.stdout.startswith(b"environment CHAT_WS_: unsafe\n  error cap-too-low")
    assert b"CHAT_WS_COLOUR: nobody knows" in run_vet("--env", "CHAT_WS_", env={"CHAT_WS_COLOUR": "1"}).stdout


def test_a_preset_is_vetted_alone_or_below_a_file(files: dict[str, str]) -> None:
    assert run_vet("--preset", "phoenix").stdout.startswith(b"preset phoenix: unsafe")
    assert b"reset-on-open" in run_vet(files["safe"], "--preset", "socket.io").stdout
    finished = run_vet("--preset", "sockets")
    assert finished.returncode == 2
    assert b"preset: got sockets; write one of socket.io, " in finished.stdout


def test_case_7_1_language_names_the_attempt_that_overflows(files: dict[str, str]) -> None:
    settings = json.dumps({**SOUND, "cap_before_power": False}).encode()
    finished = run_vet("-", "--format", "json", "--language", "java", stdin=settings)
    assert finished.returncode == 1
    assert b"error exponent-overflow: java: int milliseconds wrap at attempt 23" in finished.stdout
    assert b"--language: got 'cobol'; write " in run_vet(files["safe"], "--language", "cobol").stdout


def test_attempts_are_those_of_the_seed(files: dict[str, str]) -> None:
    first = run_vet(files["safe"], "--attempts", "9", "--seed", "7", "--json").stdout
    assert first == run_vet(files["safe"], "--attempts", "9", "--seed", "7", "--json").stdout
    assert first != run_vet(files["safe"], "--attempts", "9", "--seed", "8", "--json").stdout
    assert len(json.loads(first)["clients"][0]["attempts"]) == 4, "it gives up after four"
    text = run_vet(files["safe"], "--attempts", "2", "--seed", "7").stdout.decode()
    assert "delays with seed 7:\n       1      0." in text


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "herdgate: vet: nothing to vet; name a file, --env PREFIX or --preset NAME; see herdgate vet --help"),
        (["a.json", "--format", "xml"], "herdgate: --format: got xml; write one of json, toml, yaml, env"),
        (["a.json", "--attempts", "-1"], "herdgate: --attempts: got -1; write a number from 0 to 100,000"),
        (
            ["a.json", "--json", "--junit"],
            "herdgate: --json and --junit: only one goes to standard output; leave one of them out",
        ),
    ],
)
def test_a_wrong_option_is_one_line(arguments: list[str], line: str) -> None:
    finished = run_vet(*arguments)
    assert (finished.returncode, finished.stderr.decode(), finished.stdout) == (2, f"{line}\n", b"")


def test_a_missing_file_is_unreadable() -> None:
    finished = run_vet("none.json")
    assert finished.returncode == 2
    assert finished.stdout == b"none.json: unreadable\n  cannot be read: No such file or directory\n"


def in_shell(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command, which is `"$@"` in the script."""
    command = ["/bin/sh", "-c", script, "sh", sys.executable, "-c", "from herdgate.cli import main; main()", "vet"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ('"$@" >&-', "herdgate: vet: standard output is closed\n"),
        ('"$@" >/dev/full', "herdgate: vet: standard output cannot be written: No space left on device\n"),
    ],
)
def test_a_report_that_cannot_be_written_is_one_line(files: dict[str, str], script: str, line: str) -> None:
    finished = in_shell(script, files["safe"])
    assert (finished.returncode, finished.stderr) == (2, line)


def test_a_reader_that_has_enough_is_no_error(files: dict[str, str]) -> None:
    finished = in_shell('"$@" | head -c 21', files["safe"], "--attempts", "100000", "--json")
    assert (finished.stdout, finished.stderr) == ('{\n  "verdict": "safe"', "")


def test_a_closed_standard_input_is_unreadable() -> None:
    finished = in_shell('"$@" <&-', "-", "--format", "json")
    assert (finished.returncode, finished.stdout) == (2, "standard input: unreadable\n  is closed\n")


WITHOUT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
from herdgate_loadtest.vet.command import vet
from herdgate.core.errors import HerdgateError
try:
    vet([], preset="phoenix")
except HerdgateError as error:
    sys.exit(str(error))
"""


def vet_without(*packages: str) -> subprocess.CompletedProcess[str]:
    """Vet a preset where these packages are not installed."""
    command = [sys.executable, "-c", WITHOUT, ",".join(packages)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_it_runs_with_its_own_extra_only() -> None:
    others = ("gevent", "herdgate_gateway", "httptools", "locust", "psutil", "rich", "starlette", "uvicorn", "uvloop")
    finished = vet_without(*others, "websockets")
    assert finished.returncode == 1, finished.stderr
    assert finished.stdout.startswith("preset phoenix: unsafe")


@pytest.mark.parametrize("missing", ["pydantic", "yaml"])
def test_without_its_extra_it_says_what_to_install(missing: str) -> None:
    finished = vet_without(missing)
    assert (finished.returncode, finished.stderr) == (1, "vet needs more packages: pip install 'herdgate[vet]'\n")


def test_the_hook_runs_this_command() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["id"], hook["entry"], hook["language"]) == ("herdgate-vet", "herdgate vet", "python")
    assert hook["additional_dependencies"] == [".[vet]"]
