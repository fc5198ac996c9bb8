"""What differs between two settings."""

from pathlib import Path

import pytest

from herdgate_gateway.settings import Settings, changes, files, load, takeable

ROUTES = """
[[routes]]
name = "chat"
paths = ["/chat"]
client = { rate = 1 }
[[routes]]
name = "feed"
paths = ["/feed"]
"""


def settings_of(folder: Path, toml: str) -> Settings:
    (folder / "herdgate.toml").write_text(toml)
    return load({}, folder / "herdgate.toml", {})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("rate = 1", "rate = 1.0", []),
        ("rate = 1", "rate = 2\nburst = 5", ["rate", "burst"]),
        ("secrets = ['first-secret-of-ours']", "secrets = ['other-secret-of-ours']", ["secrets"]),
        ("[relay]\nidle_s = 5", "", ["relay.idle_s"]),
        (ROUTES, ROUTES.replace("rate = 1", "rate = 2"), ["routes[0].client.rate"]),
        (ROUTES, ROUTES.replace("rate = 1 }", "rate = 1 }\nanonymous = { open = 1 }"), ["routes[0].anonymous"]),
        (ROUTES, ROUTES.replace('"chat"', '"talk"'), ["route chat removed", "route talk added"]),
        (ROUTES, f'[[routes]]\nname = "new"\npaths = ["/new"]{ROUTES}', ["route new added"]),
    ],
)
def test_changes_are_named_without_their_values(tmp_path: Path, old: str, new: str, told: list[str]) -> None:
    assert changes(settings_of(tmp_path, old), settings_of(tmp_path, new)) == told


def test_routes_in_another_order_are_the_same_routes(tmp_path: Path) -> None:
    parts = ROUTES.replace("rate = 1", "rate = 2").split("[[routes]]")
    turned = "[[routes]]".join(("", parts[2], parts[1]))
    assert changes(settings_of(tmp_path, ROUTES), settings_of(tmp_path, turned)) == [
        "order of routes",
        "routes[1].client.rate",
    ]


def test_what_takes_a_restart_stays(tmp_path: Path) -> None:
    running = settings_of(tmp_path, "rate = 1")
    written = settings_of(
        tmp_path,
        """
        rate = 2
        listen = ["127.0.0.1:1"]
        admin = { listen = "off" }
        relay = { idle_s = 5 }
        breaker = { failures = 1 }
        tls = { certificate = "c.pem", key = "k.pem" }
        """,
    )
    taken = takeable(running, written)
    assert changes(running, taken) == ["rate"]
    assert changes(taken, written) == [
        "listen",
        "tls.certificate",
        "tls.key",
        "admin.listen",
        "relay.idle_s",
        "breaker.failures",
    ]


def test_a_certificate_moves_without_a_restart(tmp_path: Path) -> None:
    one, other = (settings_of(tmp_path, f'tls = {{ certificate = "{n}.pem", key = "{n}.key" }}') for n in "ab")
    assert takeable(one, other).tls == other.tls


def test_files_whose_content_counts_are_named(tmp_path: Path) -> None:
    found = settings_of(
        tmp_path,
        """
        tls = { certificate = "c.pem", key = "k.pem" }
        [[routes]]
        name = "a"
        paths = ["/a"]
        auth.jwt.keys = "https://id.example/jwks.json"
        [[routes]]
        name = "b"
        paths = ["/b"]
        auth.jwt.keys = "keys.json"
        """,
    )
    assert files(found) == ["tls.certificate", "tls.key", "routes[1].auth.jwt.keys"]
