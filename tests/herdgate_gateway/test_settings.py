"""Settings as a whole: defaults, which source holds, where each value is from, what the server is given."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from herdgate import AdmissionMiddleware, ClientLimits, Gate, Limits
from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.admin import AdminSettings
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.bridge import RelaySettings
from herdgate_gateway.errors import SettingsError
from herdgate_gateway.settings import Settings, load

SECRET = "a secret of enough bytes"


def write(folder: Path, text: str) -> Path:
    file = folder / "herdgate.toml"
    file.write_text(text)
    return file


def faults_of(
    flags: Mapping[str, object] | None = None, file: Path | None = None, environ: Mapping[str, str] | None = None
) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        load(flags or {}, file, environ or {})
    assert raised.value.__suppress_context__ or raised.value.__context__ is None, "no traceback of pydantic's"
    return [str(fault) for fault in raised.value.faults]


def test_defaults_are_those_of_the_parts() -> None:
    settings = load({}, None, {})
    (route,) = settings.routes
    assert (route.name, route.paths) == ("default", ("*",))
    assert settings.route_limits(route) == Limits(rate=None)
    assert settings.listen == ("127.0.0.1:8000",)
    assert settings.route_origins(route) == "same-host"
    assert settings.relay.settings() == RelaySettings(max_fragment_bytes=1 << 20)
    assert settings.breaker.settings() == BreakerSettings()
    assert settings.admin.settings() == AdminSettings()
    assert settings.secret_texts() is None
    assert set(settings.sources.values()) == {"default"}


def test_flags_hold_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "rate = 1\nburst = 1\nhold_s = 1\n[relay]\nsetup_s = 1\nclose_s = 1\nstall_s = 1\n")
    environ = {
        "HERDGATE_BURST": "2",
        "HERDGATE_HOLD_S": "2",
        "HERDGATE_RELAY__CLOSE_S": "2",
        "HERDGATE_RELAY__STALL_S": "2",
    }
    settings = load({"hold_s": 3, "relay.stall_s": "3", "rate": None}, file, environ)
    relay = settings.relay
    assert (settings.rate, settings.burst, settings.hold_s) == (1, 2, 3)
    assert (relay.setup_s, relay.close_s, relay.stall_s) == (1, 2, 3)
    sources = [settings.sources[name] for name in ("rate", "burst", "hold_s", "relay.setup_s", "relay.idle_s")]
    assert sources == [f"file {file}", "env HERDGATE_BURST", "flag", f"file {file}", "default"]


def test_a_list_is_replaced_whole(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        'workers = ["ws://a:1", "ws://b:1"]\n[[routes]]\nname = "one"\npaths = ["/a"]\n[[routes]]\nname = "two"\n',
    )
    assert [route.name for route in load({}, file, {}).routes] == ["one", "two"]
    environ = {"HERDGATE_WORKERS": "ws://c:1", "HERDGATE_ROUTES": '[{"name": "three", "client": {"open": 3}}]'}
    settings = load({}, file, environ)
    assert settings.workers == ("ws://c:1",)
    assert [route.name for route in settings.routes] == ["three"]
    assert settings.sources["routes[0].client.open"] == "env HERDGATE_ROUTES"
    assert settings.sources["routes[0].client.rate"] == "default"


def test_route_has_limits_of_its_own_and_those_of_the_process(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        rate = 500
        grace_s = 5
        max_open = 100
        max_pending = 10
        [[routes]]
        name = "chat"
        max_open = 50
        max_pending = 20
        client = { rate = 1, burst = 5, open = 3 }
        anonymous = { open = 1 }
        address = { open = 30 }
        network = { rate = 7 }
        """,
    )
    settings = load({}, file, {})
    assert settings.route_limits(settings.routes[0]) == Limits(
        rate=500,
        grace_s=5,
        max_open=50,
        max_pending=10,
        client=ClientLimits(rate=1, burst=5, open=3),
        anonymous=ClientLimits(open=1),
        address=ClientLimits(open=30),
        network=ClientLimits(rate=7),
    )


def test_route_inherits_what_it_does_not_say(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        max_wait_s = 2
        max_held = 7
        enforce = false
        allowed_origins = ["https://a.example"]
        [[routes]]
        name = "quiet"
        paths = ["/quiet"]
        [[routes]]
        name = "loud"
        paths = ["/loud"]
        max_wait_s = 0
        max_held = 0
        enforce = true
        allowed_origins = "any"
        """,
    )
    settings = load({}, file, {})
    told = [
        (
            settings.route_max_wait_s(route),
            settings.route_max_held(route),
            settings.route_enforce(route),
            settings.route_origins(route),
        )
        for route in settings.routes
    ]
    assert told == [(2, 7, False, ("https://a.example",)), (0, 0, True, None)]


def test_address_rules_follow_the_settings() -> None:
    environ = {"HERDGATE_TRUSTED_PROXIES": "10.0.0.0/8, 192.0.2.1", "HERDGATE_IPV6_PREFIX": "56"}
    rules = load({}, None, environ).address_rules()
    assert rules.client("10.1.2.3", ["198.51.100.7"]).key == "ip:198.51.100.7"
    assert rules.client("2001:db8:1:2ff::1").key == "ip:2001:db8:1:200::/56"


def test_auth_is_given_as_the_checks_take_it(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        [[routes]]
        name = "token"
        paths = ["/token"]
        client_key = { claim = "sub" }
        auth.jwt = { keys = "https://id.example/jwks", audience = ["chat"], from = "cookie", name = "id" }
        [[routes]]
        name = "asked"
        paths = ["/asked"]
        auth = { url = "http://auth.example/", timeout_s = 1, headers = ["cookie"] }
        """,
    )
    token, asked = (route.auth for route in load({}, file, {}).routes)
    assert token is not None
    assert token.jwt is not None
    assert token.url_settings() is None
    jwt = token.jwt.settings()
    assert (jwt.keys, jwt.audience, jwt.place, jwt.found_under) == (
        "https://id.example/jwks",
        ("chat",),
        "cookie",
        "id",
    )
    assert asked is not None
    url = asked.url_settings()
    assert url is not None
    assert (url.url, url.timeout_s, url.max_busy, tuple(url.headers)) == ("http://auth.example/", 1, 100, ("cookie",))


def test_gate_and_middleware_take_what_was_loaded(tmp_path: Path) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        """Never called."""

    file = write(
        tmp_path,
        f'rate = 5\nsecrets = ["{SECRET}"]\n[[routes]]\nname = "chat"\nstatuses = {{ rate = 503 }}\ndenial = "http"\n',
    )
    settings = load({}, file, {})
    (route,) = settings.routes
    gate = Gate(settings.route_limits(route), secrets=settings.secret_texts(), route=route.name)
    AdmissionMiddleware(
        app,
        gate=gate,
        websocket_paths=route.paths,
        preflight_path=settings.preflight_path,
        addresses=settings.address_rules(),
        allowed_origins=settings.route_origins(route),
        denial=route.denial,
        statuses=route.statuses,
        max_wait_s=settings.route_max_wait_s(route),
        max_held=settings.route_max_held(route),
        enforce=settings.route_enforce(route),
    )


def test_settings_are_frozen() -> None:
    settings = load({}, None, {})
    with pytest.raises(ValidationError):
        settings.rate = 5
    with pytest.raises(ValidationError):
        settings.relay.setup_s = 5
    with pytest.raises(TypeError):
        settings.sources["rate"] = "nowhere"  # type: ignore[index]


def test_equal_settings_are_equal() -> None:
    environ = {"HERDGATE_RATE": "5", "HERDGATE_SECRETS": SECRET}
    one, other = load({}, None, environ), load({}, None, environ)
    assert one == other
    assert one.relay == load({}, None, {}).relay
    assert isinstance(one, Settings)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("raet = 5", "raet: got a name that is no setting; did you mean rate?"),
        ("secret = 'hunter2'", "secret: got a name that is no setting; did you mean secrets?"),
        ("[relay]\nstal_s = 5", "relay.stal_s: got a name that is no setting; did you mean stall_s?"),
        ("setup_s = 5", "setup_s: got a name that is no setting; did you mean relay.setup_s?"),
        ("[admni]\nlisten = 'off'", "admni: got a name that is no setting; did you mean admin?"),
        ("[[routes]]\nname = 'a'\npath = ['/a']", "routes[0].path: got a name that is no setting; did you mean paths?"),
        (
            "[[routes]]\nname = 'a'\nclient = { opne = 1 }",
            "routes[0].client.opne: got a name that is no setting; did you mean open?",
        ),
        (
            "[breaker]\nqqqqq = 5",
            "breaker.qqqqq: got a name that is no setting; known here: failures, open_s, ramp_s",
        ),
    ],
)
def test_unknown_key_is_answered_with_the_one_that_was_meant(tmp_path: Path, text: str, line: str) -> None:
    file = write(tmp_path, text)
    assert faults_of(file=file) == [f"{line} (file {file})"]


def test_every_fault_is_found_at_once(tmp_path: Path) -> None:
    file = write(tmp_path, 'rate = -1\nenforce = 1\n[[routes]]\nname = "a"\nclient = { rate = "5" }\n')
    found = faults_of({"max_held": -1}, file, {"HERDGATE_RELAY__SETUP_S": "soon", "HERDGATE_X": "1"})
    assert sorted(line.partition(":")[0] for line in found) == [
        "HERDGATE_X",
        "enforce",
        "max_held",
        "rate",
        "relay.setup_s",
        "routes[0].client.rate",
    ]
    with pytest.raises(SettingsError, match=r"^HERDGATE_X: got .* \(and 5 more: see `herdgate config check`\)$"):
        load({"max_held": -1}, file, {"HERDGATE_RELAY__SETUP_S": "soon", "HERDGATE_X": "1"})


def test_fault_says_where_its_value_is_from(tmp_path: Path) -> None:
    file = write(tmp_path, "rate = -1")
    unit = "write a number of admissions per second, from 0 to 1_000_000_000"
    assert faults_of(file=file) == [f"rate: got -1; {unit} (file {file})"]
    assert faults_of(file=file, environ={"HERDGATE_RATE": "-2"}) == [f"rate: got -2; {unit} (env HERDGATE_RATE)"]
    assert faults_of({"rate": -3}, file) == [f"rate: got -3; {unit} (flag)"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"rate = ", "Invalid value (at end of document)"),
        (b"rate = 1\nrate = 2\n", "Cannot overwrite a value"),
        (b'name = "\xff"', "'utf-8' codec can't decode byte"),
    ],
)
def test_unreadable_file_is_one_line(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "h.toml"
    if content is not None:
        file.write_bytes(content)
    (line,) = faults_of(file=file)
    assert line.startswith("config: got ")
    assert reason in line
    assert "\n" not in line


def test_folder_in_place_of_a_file_is_one_line(tmp_path: Path) -> None:
    (line,) = faults_of(file=tmp_path)
    assert line.endswith("give a TOML file that can be read (Is a directory)")


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({"hold_s": 5, "grace_s": 4}, ["grace_s"]),
        ({"horizon_s": 10}, ["horizon_s"]),
        ({"ipv6_prefix": 40}, ["ipv6_network_prefix"]),
        ({"routes": [{"name": "a", "address": {"burst": 5}}]}, ["routes[0].address.burst"]),
        ({"health_path": "/a", "preflight_path": "/a"}, ["preflight_path"]),
        ({"proxy_protocol": True}, ["proxy_protocol"]),
        ({"listen": ["127.0.0.1:9901"]}, ["admin.listen"]),
        ({"routes": [{"name": "a", "paths": ["/a"]}, {"name": "a", "paths": ["/b"]}]}, ["routes[1].name"]),
        ({"routes": [{"name": "a"}, {"name": "b"}]}, ["routes[1].paths"]),
        ({"routes": [{"name": "a"}, {"name": "b", "paths": ["/b"]}]}, ["routes[1].paths"]),
        ({"routes": [{"name": "a", "client_key": {"claim": "sub"}}]}, ["routes[0].client_key.claim"]),
        (
            {"routes": [{"name": "a", "client_key": {"claim": "sub"}, "auth": {"url": "http://a/"}}]},
            ["routes[0].client_key.claim"],
        ),
        ({"grace_s": 0, "proxy_protocol": True}, ["grace_s", "proxy_protocol"]),
    ],
)
def test_values_that_do_not_go_together_are_named(values: dict[str, object], fields: list[str]) -> None:
    assert [line.partition(": got")[0] for line in faults_of(values)] == fields


@pytest.mark.parametrize(
    "values",
    [
        {"ipv6_prefix": 40, "ipv6_network_prefix": 40},
        {"hold_s": 0.5, "grace_s": 1},
        {"hint_cap_s": 700, "horizon_s": 700},
        {"health_path": "off", "preflight_path": "off"},
        {"proxy_protocol": True, "trusted_proxies": ["10.0.0.0/8"]},
        {"proxy_protocol": True, "listen": ["unix:/run/h.sock"]},
        {"listen": ["127.0.0.1:0", "127.0.0.1:0"], "admin.listen": "127.0.0.1:0"},
    ],
)
def test_values_that_go_together_are_taken(values: dict[str, object]) -> None:
    load(values, None, {})


@pytest.mark.parametrize(
    ("given", "each"), [({}, 50), ({"handshakes_per_s": 30}, 10), ({"handshakes_per_s": 1}, 1 / 3)]
)
def test_tls_handshakes_are_divided_among_the_processes(given: dict[str, object], each: float) -> None:
    settings = load({"rate": 37.5, "processes": 3, "tls": given}, None, {})
    assert settings.tls_rate == pytest.approx(each)


def test_a_pace_of_tls_handshakes_that_nobody_could_keep_is_a_fault() -> None:
    (line,) = faults_of({"listener": "asyncio", "tls": {"handshakes_per_s": 20}})
    told, _, way_out = line.partition("; ")
    assert told == "tls.handshakes_per_s: got 20.0"
    assert way_out == 'leave it out, or write listener = "own": asyncio takes whoever comes at once (flag)'
    assert load({"listener": "asyncio", "tls": {"handshakes_per_s": "auto"}}, None, {}).tls.handshakes_per_s is None


def test_values_come_through_json_as_through_toml(tmp_path: Path) -> None:
    text = '[[routes]]\nname = "a"\npaths = ["/a", "/b/*"]\nconnection_id = { query = "id" }\nmax_wait_s = "inherit"\n'
    routes = [{"name": "a", "paths": ["/a", "/b/*"], "connection_id": {"query": "id"}, "max_wait_s": None}]
    from_file = load({}, write(tmp_path, text), {})
    assert load({}, None, {"HERDGATE_ROUTES": json.dumps(routes)}).routes == from_file.routes


@pytest.mark.parametrize("wrong", ['"MY-REAL-SECRET-0123456789"', '{ a = "MY-REAL-SECRET-0123456789" }'])
def test_secret_that_is_no_list_is_not_shown(tmp_path: Path, wrong: str) -> None:
    (line,) = faults_of(file=write(tmp_path, f"secrets = {wrong}\n"))
    assert line.startswith("secrets: got a value not shown; write a list")


def test_password_of_a_redis_url_that_is_wrong_is_not_shown() -> None:
    (line,) = faults_of({"fleet": {"redis": "http://:MY-REAL-PASSWORD@a"}})
    assert line.startswith("fleet.redis: got ")
    assert "PASSWORD" not in line


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("redis://u:hidden@a:x", "fleet.redis: got redis://***@a:***; write a port from 1 to 65535"),
        ("redis+sentinel://a", "fleet.redis: got redis+sentinel://a; name the service"),
        ("redis://a?tls=1", "fleet.redis: got redis://a?***; leave out tls: options are db"),
    ],
)
def test_wrong_part_of_a_redis_url_is_named(url: str, line: str) -> None:
    (told,) = faults_of({"fleet": {"redis": url}})
    assert told.startswith(line)


@pytest.mark.parametrize(
    ("fleet", "line"),
    [
        ({"name": "ch at"}, "fleet.name: got 'ch at'; write 1 to 64 letters, digits, ., - and _"),
        ({"fail": "shut"}, "fleet.fail: got 'shut'; write 'local_share', 'closed' or 'open'"),
        (
            {"rate_min": -1},
            "fleet.rate_min: got -1; write a number of admissions per second, from 0 to 1_000_000_000, ",
        ),
    ],
)
def test_fault_of_a_fleet_is_named_as_in_the_file(fleet: dict[str, object], line: str) -> None:
    (told,) = faults_of({"fleet": {"redis": "redis://a", **fleet}})
    assert told.startswith(line)


def test_rate_that_stays_is_the_other_way_out_of_a_wrong_rate_min() -> None:
    (told,) = faults_of({"fleet": {"redis": "redis://a", "rate_min": -1}})
    assert 'or "none" for a rate that stays as set' in told


@pytest.mark.parametrize("fleet", [{"name": "default"}, {"fail": "closed"}, {"rate_min": "none"}])
def test_fleet_without_a_redis_is_a_fault(fleet: dict[str, object]) -> None:
    (line,) = faults_of({"fleet": fleet})
    (name,) = fleet
    assert line == f"fleet.redis: got nothing; write the URL of the fleet's Redis, or leave out fleet.{name}"


@pytest.mark.parametrize("leases", [{"region": "eu-west-1"}, {"endpoint_url": "http://127.0.0.1:4566"}])
def test_leases_without_a_table_are_a_fault(leases: dict[str, object]) -> None:
    (line,) = faults_of({"leases": leases})
    (name,) = leases
    assert line == f"leases.table: got nothing; write the name of the lease table, or leave out leases.{name}"


def test_a_lease_table_beside_workers_is_a_fault_that_says_where_the_table_is_from() -> None:
    environ = {"HERDGATE_LEASES__TABLE": "herd"}
    with pytest.raises(SettingsError) as wrong:
        load({"workers": ["ws://127.0.0.1:9001"], "rate": 5.0}, None, environ)
    (fault,) = wrong.value.faults
    assert str(fault).startswith("leases.table: got herd; leave it out, or workers: owners in a lease table say where")
    assert "env HERDGATE_LEASES__TABLE" in str(fault)


@pytest.mark.parametrize(
    ("leases", "connection_id", "way_out"),
    [
        ({"table": "herd"}, None, "say in connection_id where ids stand: one that is drawn never comes twice"),
        ({}, {"query": "id"}, "write leases.table: without leases two sockets of one connection may be at two workers"),
    ],
)
def test_one_socket_a_connection_takes_ids_and_leases(
    leases: dict[str, str], connection_id: dict[str, str] | None, way_out: str
) -> None:
    route = {"name": "a", "duplicates": "replace", "connection_id": connection_id}
    (told,) = faults_of({"leases": leases, "routes": [route]})
    assert told.startswith(f"routes[0].duplicates: got replace; {way_out}")


def test_a_fleet_has_a_name_without_a_redis_where_it_has_leases() -> None:
    assert load({"leases": {"table": "herd"}, "fleet": {"name": "chat"}}, None, {}).fleet.name == "chat"


def test_least_rate_is_not_above_the_rate() -> None:
    fleet = {"redis": "redis://a", "rate_min": 6}
    (line,) = faults_of({"rate": 5, "fleet": fleet})
    assert line.startswith("fleet.rate_min: got 6.0; write a number up to the rate, 5")
    load({"rate": 6, "fleet": fleet}, None, {})


@pytest.mark.parametrize("beside", [{"fleet": {"redis": "redis://a"}}, {"processes": 2}])
def test_more_workers_than_a_call_can_name_are_a_fault(beside: dict[str, object]) -> None:
    workers = [f"ws://127.0.0.1:{port}" for port in range(1, 256)]
    (line,) = faults_of({"workers": workers, **beside})
    assert line.startswith("workers: got 255; write at most 254")
    load({"workers": workers[:254], **beside}, None, {})
    load({"workers": workers}, None, {})
