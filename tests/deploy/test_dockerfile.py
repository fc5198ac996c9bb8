"""What gateway/Dockerfile says: no shell before the process, no root, nothing of the build, nothing by chance."""

import json
import re
import tomllib
from pathlib import Path

from herdgate_gateway.deployments.readers.commands import shell_of
from herdgate_gateway.settings import load

ROOT = Path(__file__).parent.parent.parent
LINES = re.sub(r"\\\n\s*", "", (ROOT / "gateway" / "Dockerfile").read_text()).splitlines()
STEPS = [line.partition(" ")[::2] for line in LINES if line and not line.startswith("#")]


def last_stage() -> list[tuple[str, str]]:
    start = max(position for position, (word, _) in enumerate(STEPS) if word == "FROM")
    return [(word, rest.strip()) for word, rest in STEPS[start:]]


def told(word: str) -> str:
    (rest,) = [rest for each, rest in last_stage() if each == word]
    return rest


def test_image_runs_the_command_without_a_shell() -> None:
    words = [*json.loads(told("ENTRYPOINT")), *json.loads(told("CMD"))]
    assert words == ["herdgate", "serve"]
    assert shell_of(words) is None


def test_image_has_a_user_and_a_health_check_without_a_shell() -> None:
    assert told("USER") == "10001:10001"
    check = told("HEALTHCHECK").partition("CMD ")[2]
    assert json.loads(check)[0] == "python3"


def test_image_takes_only_what_was_installed_from_the_build() -> None:
    assert len([word for word, _ in STEPS if word == "FROM"]) == 2
    copies = [rest for word, rest in last_stage() if word == "COPY"]
    assert copies == ["--from=build /opt/herdgate /opt/herdgate", "gateway/herdgate.toml /etc/herdgate/herdgate.toml"]


def test_only_what_the_build_needs_is_sent_to_it() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert next(line for line in lines if not line.startswith("#")) == "*"
    kept = [line.removeprefix("!") for line in lines if line.startswith("!")]
    assert [name for name in kept if not (ROOT / name).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert [name for name in packages if not any(name.startswith(each) for each in kept)] == []


def test_settings_of_the_image_can_be_served_once_there_are_a_rate_and_workers() -> None:
    environ = {"HERDGATE_RATE": "5", "HERDGATE_WORKERS": "ws://10.0.1.11:9001"}
    settings = load({}, ROOT / "gateway" / "herdgate.toml", environ)
    assert settings.listen == ("0.0.0.0:8000",)
    assert settings.admin.listen == "0.0.0.0:9901"
