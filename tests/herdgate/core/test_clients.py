"""Who an arrival is: addresses, the walk through the forwarding header, and better keys."""

import random
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate.core.clients import (
    LOCAL,
    LONGEST_IDENTITY,
    AddressRules,
    Client,
    ForwardingHeader,
    parse_address,
    parse_networks,
)

BEHIND_PROXY = AddressRules(trusted_proxies=["10.0.0.0/8", "2001:db8:ffff::/48"])
FORWARDED = AddressRules(trusted_proxies=["10.0.0.0/8", "2001:db8:ffff::/48"], forwarding_header="forwarded")
PROXY = "10.0.0.5"
CLIENT = Client("ip:203.0.113.7", "ip:203.0.113.7")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:443", "192.0.2.1"),
        (" 192.0.2.1\t", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("::", "::"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("[fe80::1%eth0]:443", "fe80::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:443", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("2001:db8::192.0.2.1", "2001:db8::c000:201"),
    ],
)
def test_address_is_read_without_port_brackets_and_zone(text: str, address: str) -> None:
    assert parse_address(text) == ip_address(address)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "unknown",
        "_hidden",
        "localhost",
        "192.0.2",
        "192.0.2.256",
        "192.0.2.01",
        "192.0.2.1:",
        "192.0.2.1:http",
        "192.0.2.1 192.0.2.2",
        "192.0.2.1,192.0.2.2",
        "192.0.2.1/32",
        "\u0661\u0669\u0662.0.2.1",
        "[2001:db8::1",
        "2001:db8::1]",
        "[2001:db8::1]443",
        "[]",
        ":",
        ":::",
        "1:2:3:4:5:6:7:8:9",
        "2001:db8::g",
        "2001:db8::1\n%eth0\n",
        "/run/app.sock",
        "0x7f000001",
        "2130706433",
    ],
)
def test_what_is_no_address_is_none(text: str) -> None:
    assert parse_address(text) is None


@given(address=st.ip_addresses(), port=st.integers(0, 65_535))
def test_every_address_is_read_as_ipaddress_reads_it(address: IPv4Address | IPv6Address, port: int) -> None:
    wanted = getattr(address, "ipv4_mapped", None) or address
    bracketed = f"[{address}]" if address.version == 6 else str(address)
    for text in (str(address), address.exploded, bracketed, f"{bracketed}:{port}"):
        assert parse_address(text) == wanted


@given(text=st.text(alphabet="0123456789abf:.[]%/ ", max_size=45))
def test_bare_text_is_an_address_only_if_ipaddress_says_so(text: str) -> None:
    parsed = parse_address(text)
    if not set(text) & set("[]% ") and (text.count(":") != 1):
        try:
            wanted = ip_address(text)
        except ValueError:
            assert parsed is None
        else:
            assert parsed == (getattr(wanted, "ipv4_mapped", None) or wanted)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("text", [":" * 60_000 + "x", "1" * 60_000, "a:" * 30_000, "[" + ":" * 60_000, "[" * 60_000])
def test_header_made_to_be_slow_is_read_at_once(text: str) -> None:
    assert BEHIND_PROXY.client(PROXY, [text]).key == f"ip:{PROXY}"


@pytest.mark.parametrize("peer", [None, "", "/run/app.sock", "testclient"])
def test_peer_without_an_address_is_local(peer: str | None) -> None:
    assert BEHIND_PROXY.client(peer, ["203.0.113.7"]) == LOCAL


def test_twenty_handshakes_with_a_rotating_first_entry_have_one_key() -> None:
    """CASES 2.4."""
    draw = random.Random(24)
    rotating = [f"{IPv4Address(draw.getrandbits(32))}, 203.0.113.7" for _ in range(20)]
    assert len(set(rotating)) == 20
    assert {BEHIND_PROXY.client(PROXY, [value]) for value in rotating} == {CLIENT}


@pytest.mark.parametrize(
    "header", ["203.0.113.7", "10.0.0.1", "203.0.113.7, 10.0.0.1", "198.51.100.9, 203.0.113.7", "garbage", ""]
)
def test_untrusted_peer_is_the_client_whatever_it_forwards(header: str) -> None:
    """CASES 2.4."""
    assert BEHIND_PROXY.client("198.51.100.9", [header]).key == "ip:198.51.100.9"


@pytest.mark.parametrize(
    ("header", "key"),
    [
        (["203.0.113.7"], "ip:203.0.113.7"),
        (["203.0.113.7:50123"], "ip:203.0.113.7"),
        (["203.0.113.7, 10.1.1.1, 10.2.2.2"], "ip:203.0.113.7"),
        (["203.0.113.7", "10.1.1.1", "10.2.2.2"], "ip:203.0.113.7"),
        (["198.51.100.9, 203.0.113.7"], "ip:203.0.113.7"),
        (["203.0.113.7,10.1.1.1"], "ip:203.0.113.7"),
        (["198.51.100.9, 203.0.113.7, 2001:db8:ffff::1"], "ip:203.0.113.7"),
        (["10.1.1.1, 10.2.2.2"], "ip:10.1.1.1"),
        (["203.0.113.7, unknown"], "ip:10.0.0.5"),
        (["203.0.113.7, unknown, 10.1.1.1"], "ip:10.1.1.1"),
        (["203.0.113.7, , 10.1.1.1"], "ip:10.1.1.1"),
        (["203.0.113.7,"], "ip:10.0.0.5"),
        ([""], "ip:10.0.0.5"),
        ([], "ip:10.0.0.5"),
        (["[2001:db8:1:2::3]:443"], "ip:2001:db8:1:2::/64"),
        (["::ffff:203.0.113.7"], "ip:203.0.113.7"),
        (["for=203.0.113.7"], "ip:10.0.0.5"),
    ],
)
def test_first_untrusted_address_from_the_right_is_the_client(header: list[str], key: str) -> None:
    assert BEHIND_PROXY.client(PROXY, header).key == key


@pytest.mark.parametrize(
    ("header", "key"),
    [
        (["for=203.0.113.7"], "ip:203.0.113.7"),
        (['for="203.0.113.7:50123";proto=https'], "ip:203.0.113.7"),
        (['proto=https;For="[2001:db8:1:2::3]:443"'], "ip:2001:db8:1:2::/64"),
        (["for=198.51.100.9, for=203.0.113.7 , for=10.1.1.1"], "ip:203.0.113.7"),
        (["for=198.51.100.9", "for=203.0.113.7;by=10.0.0.5"], "ip:203.0.113.7"),
        (["for=203.0.113.7, for=_hidden"], "ip:10.0.0.5"),
        (["for=203.0.113.7, for=unknown, for=10.1.1.1"], "ip:10.1.1.1"),
        (["for=203.0.113.7, by=10.1.1.1"], "ip:10.0.0.5"),
        (['for=198.51.100.9;by="a, for=203.0.113.7'], "ip:203.0.113.7"),
        (["203.0.113.7"], "ip:10.0.0.5"),
        (["for"], "ip:10.0.0.5"),
    ],
)
def test_forwarded_is_read_as_rfc_7239_writes_it(header: list[str], key: str) -> None:
    assert FORWARDED.client(PROXY, header).key == key


def test_nobody_is_trusted_unless_named() -> None:
    for rules in (AddressRules(), AddressRules(trusted_proxies=["10.0.0.6"])):
        assert rules.client(PROXY, ["203.0.113.7"]).key == "ip:10.0.0.5"
    assert not AddressRules().is_trusted(ip_address(PROXY))


def test_a_mapped_peer_is_trusted_as_the_ipv4_address_it_is() -> None:
    assert BEHIND_PROXY.client("::ffff:10.0.0.5", ["203.0.113.7"]) == CLIENT
    assert BEHIND_PROXY.is_trusted(ip_address(PROXY))


ends_the_walk = st.sampled_from(["203.0.113.7", "2001:db8:1::1", "unknown", "", "10.0.0", "_x", "10.0.0.1 10.0.0.2"])
trusted = st.sampled_from(["10.1.1.1", "10.2.2.2:80", "2001:db8:ffff::1", "[2001:db8:ffff::1]:80", "::ffff:10.9.9.9"])
headers: dict[ForwardingHeader, AddressRules] = {"x-forwarded-for": BEHIND_PROXY, "forwarded": FORWARDED}


@given(
    left=st.lists(st.one_of(ends_the_walk, trusted, st.text(max_size=20)), max_size=5),
    end=ends_the_walk,
    right=st.lists(trusted, max_size=4),
    cut=st.integers(0, 10),
    header=st.sampled_from(sorted(headers)),
)
def test_walk_never_goes_left_of_the_first_untrusted_or_malformed_entry(
    left: list[str], end: str, right: list[str], cut: int, header: ForwardingHeader
) -> None:
    entries = [*left, end, *right]
    if header == "forwarded":
        entries = [f'for="{entry}"' for entry in entries]
    rules = headers[header]
    told = entries[len(left) :]

    client = rules.client(PROXY, split(entries, cut))

    assert client == rules.client(PROXY, told)
    last = parse_address(end) or parse_address(right[0] if right else PROXY)
    assert last is not None
    assert client == rules.client(str(last))


def split(entries: Sequence[str], cut: int) -> list[str]:
    """One header line, or two."""
    return [",".join(part) for part in (entries[:cut], entries[cut:]) if part]


@given(address=st.ip_addresses(v=6), prefix=st.integers(1, 128), data=st.data())
def test_ipv6_is_cut_to_its_prefix_and_belongs_to_a_wider_network(
    address: IPv6Address, prefix: int, data: st.DataObject
) -> None:
    wider = data.draw(st.integers(1, prefix))
    client = AddressRules(ipv6_prefix=prefix, ipv6_network_prefix=wider).client(str(address))
    if address.ipv4_mapped:
        assert client.key == f"ip:{address.ipv4_mapped}"
        return
    assert client.key == client.address == f"ip:{IPv6Network((address, prefix), strict=False)}"
    assert client.network == f"net:{IPv6Network((address, wider), strict=False)}"


def test_ipv6_is_one_client_per_64_and_one_network_per_48_unless_said() -> None:
    client = AddressRules().client("2001:db8:1:2:3:4:5:6")
    assert client == Client("ip:2001:db8:1:2::/64", "ip:2001:db8:1:2::/64", "net:2001:db8:1::/48")


def test_ipv4_has_no_wider_network() -> None:
    assert AddressRules().client("203.0.113.7") == CLIENT


def test_exempt_networks_are_those_of_the_client_not_of_its_proxy() -> None:
    rules = AddressRules(trusted_proxies=["10.0.0.0/8"], exempt_networks=["10.0.0.0/8", "2001:db8::/32"])
    assert rules.client(PROXY).exempt
    assert rules.client(PROXY, ["2001:db8::1"]).exempt
    assert not rules.client(PROXY, ["203.0.113.7"]).exempt
    assert not rules.client(None).exempt


def test_identity_is_the_key_and_its_address_stays_beside_it() -> None:
    anonymous = AddressRules().client("2001:db8:1:2::3")
    client = anonymous.identify("ada")
    assert client == Client("id:ada", anonymous.address, anonymous.network, identified=True)
    assert client.identify("eve") == anonymous.identify("eve")


def test_identity_may_be_exempt_and_keeps_its_address_exempt() -> None:
    assert CLIENT.identify("probe", exempt=True).exempt
    assert CLIENT._replace(exempt=True).identify("ada").exempt
    assert not CLIENT.identify("ada").exempt


@pytest.mark.parametrize("identity", ["ip:203.0.113.7", "local", "203.0.113.7"])
def test_identity_cannot_pose_as_an_address(identity: str) -> None:
    keys = {client.key for client in (CLIENT, LOCAL)}
    assert CLIENT.identify(identity).key not in keys


@pytest.mark.parametrize("identity", ["x" * 100_000, "é" * LONGEST_IDENTITY, "\ud800", "user \udcff"])
def test_identity_of_any_length_and_letters_makes_a_small_key(identity: str) -> None:
    key = CLIENT.identify(identity).key
    assert len(key.encode()) <= LONGEST_IDENTITY
    assert key == CLIENT.identify(identity).key
    assert key != CLIENT.identify(identity + "y").key
    assert key != CLIENT.identify(key.removeprefix("digest:")).key


@pytest.mark.parametrize("identity", ["", "ada", "Zoë", "x" * (LONGEST_IDENTITY - 3)])
def test_usual_identity_is_readable_in_its_key(identity: str) -> None:
    assert CLIENT.identify(identity).key == f"id:{identity}"


def test_networks_are_read_in_order() -> None:
    texts = ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1"]
    assert parse_networks("field", texts) == tuple(ip_network(text) for text in texts)
    assert parse_networks("field", iter(texts)) == parse_networks("field", texts)
    assert parse_networks("field", []) == ()


def test_header_that_is_read_is_the_one_chosen() -> None:
    assert (BEHIND_PROXY.forwarding_header, FORWARDED.forwarding_header) == ("x-forwarded-for", "forwarded")
