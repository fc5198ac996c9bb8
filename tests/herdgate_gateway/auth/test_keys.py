"""Keys from JWKS and PEM: what each may verify, and what is left out."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from herdgate_gateway.auth.keys import BadKeysError, matching, read_keys
from tests.herdgate_gateway.auth.tokens import jwk, jwks, private, private_pem, public_pem

RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
FITTING = [
    ("RS256", RSA),
    *((name, frozenset({name})) for name in ("ES256", "ES384", "ES512", "EdDSA")),
]


@pytest.mark.parametrize(("algorithm", "fitting"), FITTING)
def test_a_key_says_what_it_may_verify(algorithm: str, fitting: frozenset[str]) -> None:
    (from_jwks,), (from_pem,) = read_keys(jwks(jwk(algorithm, "a"))), read_keys(public_pem(algorithm))
    assert (from_jwks.kid, from_pem.kid) == ("a", None)
    assert from_jwks.algorithms == from_pem.algorithms == fitting


def test_secret_is_for_hmac_alone() -> None:
    assert read_keys(jwks(jwk("HS256")))[0].algorithms == {"HS256", "HS384", "HS512"}
    short = {"kty": "oct", "k": "YQ" * 22}  # 33 bytes
    assert read_keys(jwks(short))[0].algorithms == {"HS256"}


def test_named_algorithm_is_the_only_one() -> None:
    assert read_keys(jwks(jwk("RS256", alg="PS384")))[0].algorithms == {"PS384"}


def test_single_jwk_and_several_pem_blocks_are_read() -> None:
    assert len(read_keys(json.dumps(jwk("RS256")).encode())) == 1
    several = b"# old\n" + public_pem("RS256", "old") + b"\n# new\n" + public_pem("ES256", "new")
    assert [max(key.algorithms) for key in read_keys(several)] == ["RS512", "ES256"]


def test_certificate_is_read() -> None:
    key = private("ES256")
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1)
    )
    certificate = builder.sign(key, hashes.SHA256())
    assert read_keys(certificate.public_bytes(Encoding.PEM))[0].algorithms == {"ES256"}


@pytest.mark.parametrize(
    "useless",
    [
        jwk("RS256", use="enc"),
        jwk("RS256", key_ops=["encrypt"]),
        jwk("RS256", alg="ES256"),
        jwk("RS256", alg="none"),
        jwk("RS256", alg=5),
        jwk("RS256", kid=5),
        {**jwk("RS256"), "n": "AQAB"},
        {"kty": "oct", "k": "c2hvcnQ"},
        {"kty": "future"},
        {"kty": "EC", "crv": "P-256"},
        {"kty": ["RSA"]},
        {},
    ],
)
def test_useless_keys_are_left_out_and_others_kept(useless: dict[str, object]) -> None:
    with pytest.raises(BadKeysError):
        read_keys(jwks(useless))
    assert [key.kid for key in read_keys(jwks(useless, jwk("ES256", "good")))] == ["good"]


def test_private_keys_are_refused() -> None:
    with pytest.raises(BadKeysError, match="private key"):
        read_keys(private_pem("RS256"))
    key = private("RS256")
    assert isinstance(key, rsa.RSAPrivateKey)
    with pytest.raises(BadKeysError):
        read_keys(jwks(RSAAlgorithm.to_jwk(key, as_dict=True)))


def test_short_rsa_key_is_refused() -> None:
    short = rsa.generate_private_key(65_537, 1024).public_key()
    with pytest.raises(BadKeysError, match="too short"):
        read_keys(short.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(BadKeysError):
        read_keys(jwks(RSAAlgorithm.to_jwk(short, as_dict=True)))


def test_ed448_is_read() -> None:
    pem = ed448.Ed448PrivateKey.generate().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert read_keys(pem)[0].algorithms == {"EdDSA"}


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{}", b"[]", b"null", b'{"keys": {}}', b'{"keys": []}', b'{"keys": [1, null, "x"]}', b"[" * 100_000),
        *(b"\xff\xfe", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", b"-----BEGIN PUBLIC KEY-----"),
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
    ],
)
def test_what_is_no_key_set_is_refused(text: bytes) -> None:
    with pytest.raises(BadKeysError):
        read_keys(text)


def test_more_keys_than_can_be_tried_are_refused() -> None:
    with pytest.raises(BadKeysError, match="more than 32"):
        read_keys(jwks(*[jwk("ES256", str(number)) for number in range(33)]))


@given(st.binary(max_size=300), st.sampled_from([b"", b'{"keys":[{"kty":"RSA",', b"-----BEGIN PUBLIC KEY-----\n"]))
def test_any_bytes_are_keys_or_refused(rest: bytes, start: bytes) -> None:
    with pytest.raises(BadKeysError):
        read_keys(start + rest)


def test_key_id_chooses_and_a_key_without_id_fits_any() -> None:
    keys = read_keys(jwks(jwk("ES256", "a"), jwk("ES256", "b"), jwk("ES256")))
    assert [key.kid for key in matching(keys, "a", "ES256")] == ["a", None]
    assert [key.kid for key in matching(keys, None, "ES256")] == ["a", "b", None]
    assert [key.kid for key in matching(keys, "c", "ES256")] == [None]
    assert matching(keys, "a", "RS256") == ()
