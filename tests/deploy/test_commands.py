"""What commands of containers are taken for."""

import pytest

from herdgate_gateway.deployments.model import PreStop
from herdgate_gateway.deployments.readers.commands import options, ping_s, prestop_of, role_of, shell_of


@pytest.mark.parametrize(
    ("image", "words", "role"),
    [
        ("herdgate", [], "gateway"),
        ("registry:5000/team/herdgate:1.2@sha256:ab", ["serve", "--rate", "5"], "gateway"),
        ("herdgate", ["worker", "app:app"], "worker"),
        ("herdgate", ["leases", "init"], None),
        ("mine", ["/opt/herdgate/bin/herdgate", "worker", "app:app"], "worker"),
        ("mine", ["sh", "-c", "cd /app && exec herdgate serve --rate 5"], "gateway"),
        ("mine", ["tini", "--", "herdgate", "serve"], "gateway"),
        ("mine", ["herdgate"], None),
        ("herdgate-exporter", [], None),
        ("redis:7", ["redis-server"], None),
        ("mine", ["sh", "-c", 'say "herdgate'], None),
    ],
)
def test_role_is_told_by_image_and_command(image: str, words: list[str], role: str | None) -> None:
    assert role_of(image, words) == role


@pytest.mark.parametrize(
    ("words", "shell"),
    [
        (["sh", "-c", "herdgate serve"], "sh -c"),
        (["/bin/bash", "-ec", "set -u; herdgate serve"], "/bin/bash -ec"),
        (["sh", "-c", "exec true && herdgate serve"], "sh -c"),
        (["sh", "-c", "herdgate serve; exec true; true"], "sh -c"),
        (["sh", "-c", "exec herdgate serve"], None),
        (["sh", "-c", "umask 077 &&  exec herdgate serve\n"], None),
        (["sh", "/entry.sh"], None),
        (["herdgate", "-c", "x"], None),
        ([], None),
    ],
)
def test_shell_that_stays_is_found(words: list[str], shell: str | None) -> None:
    assert shell_of(words) == shell


@pytest.mark.parametrize(
    ("words", "hook"),
    [
        (["herdgate", "drain", "--wait"], PreStop(drains=True)),
        (["herdgate", "drain", "--wait", "--deadline", "30"], PreStop(drains=True, seconds=30)),
        (["herdgate", "drain", "--deadline=12.5", "--wait"], PreStop(drains=True, seconds=12.5)),
        (["sh", "-c", "sleep 5; herdgate drain --wait"], PreStop(drains=True, beside_s=5)),
        (["herdgate", "drain", "--wait", "--deadline", "$SOON"], PreStop(drains=True)),
        (["herdgate", "drain"], PreStop(seconds=0)),
        (["sh", "-c", "herdgate drain; sleep 20"], PreStop(seconds=20)),
        (["sleep", "15"], PreStop(seconds=15)),
        (["/bin/sh", "-c", "sleep 1m && sleep 5s"], PreStop(seconds=65)),
        (["/bin/sh", "-c", "nginx -s quit"], PreStop()),
        ([], PreStop()),
    ],
)
def test_prestop_is_told_by_its_words(words: list[str], hook: PreStop) -> None:
    assert prestop_of(words) == hook


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (["--ws-ping-interval", "55"], 55),
        (["--ws-ping-interval=7.5"], 7.5),
        (["--ws-ping-interval", "x"], None),
        ([], None),
    ],
)
def test_pings_are_told_by_an_option_of_the_server(words: list[str], seconds: float | None) -> None:
    assert ping_s(["uvicorn", *words]) == seconds


def test_options_become_settings() -> None:
    words = ["serve", "--listen", "a:1", "--rate=5", "--listen", "b:2", "--rate", "6"]
    assert options(words, {"--listen": "listen", "--rate": "rate", "--burst": "burst"}) == {
        "listen": ["a:1", "b:2"],
        "rate": "5",
    }
