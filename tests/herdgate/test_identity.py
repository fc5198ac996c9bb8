"""From a scope to a client: address, better key, exemption."""

import logging

import pytest

from herdgate import AddressRules, ConfigurationError
from herdgate.asgi import Scope
from herdgate.core.clients import LOCAL, Client
from herdgate.identity import Identity
from herdgate.request import read_request
from tests.fake_server import websocket_scope


def read(identity: Identity, scope: Scope) -> Client:
    return identity.client(scope, read_request(scope, "default", identity.forwarding_header))


def user(scope: Scope) -> str | None:
    return dict(scope["headers"]).get(b"x-user", b"").decode() or None


def test_without_a_better_key_the_address_counts() -> None:
    client = read(Identity(AddressRules(), None, ()), websocket_scope())
    assert client == Client("ip:192.0.2.1", "ip:192.0.2.1")


@pytest.mark.parametrize("peer", [None, ("/run/app.sock", None), ("", 0), ["not an address", 1]])
def test_peer_without_an_address_is_local(peer: object) -> None:
    assert read(Identity(AddressRules(), None, ()), websocket_scope(client=peer)) == LOCAL


def test_better_key_counts_and_keeps_the_address_beside_it() -> None:
    client = read(Identity(AddressRules(), user, ()), websocket_scope(headers={"X-User": "ann"}))
    assert client == Client("id:ann", "ip:192.0.2.1", identified=True)


def test_better_key_cannot_pose_as_an_address() -> None:
    client = read(Identity(AddressRules(), user, ()), websocket_scope(headers={"X-User": "ip:192.0.2.1"}))
    assert client.key == "id:ip:192.0.2.1"


def test_forwarding_header_is_read_behind_a_trusted_proxy() -> None:
    rules = AddressRules(trusted_proxies=["192.0.2.0/24"], forwarding_header="forwarded")
    identity = Identity(rules, None, ())
    assert identity.forwarding_header == "forwarded"
    headers = {"Forwarded": "for=203.0.113.7", "X-Forwarded-For": "198.51.100.1"}
    assert read(identity, websocket_scope(headers=headers)).key == "ip:203.0.113.7"


def test_client_key_sees_the_scope_without_tickets() -> None:
    ticket, seen = "1." + "A" * 34, []

    def key(scope: Scope) -> None:
        seen.append(f"{scope['headers']} {scope['query_string']!r}")

    headers = {"Herdgate-Ticket": ticket, "Cookie": f"a=1; herdgate_ticket_default={ticket}"}
    scope = websocket_scope(headers=headers, query_string=f"b=2&herdgate_ticket={ticket}".encode())
    read(Identity(AddressRules(), key, ()), scope)
    assert len(seen) == 1
    assert ticket not in seen[0]
    assert "a=1" in seen[0]
    assert "b=2" in seen[0]


@pytest.mark.parametrize(("name", "exempt"), [("probe", True), ("ann", False), ("prob", False)])
def test_exempt_key_is_compared_whole(name: str, exempt: bool) -> None:
    identity = Identity(AddressRules(), user, ["probe", "other"])
    assert read(identity, websocket_scope(headers={"X-User": name})).exempt is exempt


def test_exempt_address_stays_exempt_under_a_better_key() -> None:
    identity = Identity(AddressRules(exempt_networks=["192.0.2.1"]), user, ())
    assert read(identity, websocket_scope(headers={"X-User": "ann"})).exempt


def test_failure_of_client_key_is_logged_once_and_the_address_counts(caplog: pytest.LogCaptureFixture) -> None:
    def key(scope: Scope) -> str:
        raise LookupError("no such session")

    identity = Identity(AddressRules(), key, ())
    for _ in range(5):
        assert read(identity, websocket_scope()).key == "ip:192.0.2.1"
    assert [(record.name, record.levelno) for record in caplog.records] == [("herdgate", logging.ERROR)]
    assert "client_key" in caplog.records[0].message


@pytest.mark.parametrize("answer", [7, b"ann", ["ann"], {"key": "ann"}, True, object()])
def test_answer_that_is_no_text_counts_as_a_failure(answer: object, caplog: pytest.LogCaptureFixture) -> None:
    identity = Identity(AddressRules(), lambda scope: answer, ["probe"])  # type: ignore[arg-type,return-value]
    assert read(identity, websocket_scope()).key == "ip:192.0.2.1"
    assert "client_key returned" in caplog.text


def test_exempt_keys_without_client_key_point_to_exempt_networks() -> None:
    with pytest.raises(ConfigurationError, match="exempt_networks"):
        Identity(AddressRules(), None, ["192.0.2.1"])
