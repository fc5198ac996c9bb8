"""Keys made once per test process, and tokens signed with them."""

import base64
import hmac
import json
import time
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm

__all__ = ["SECRET", "claims", "encode", "jwk", "jwks", "private", "private_pem", "public_pem", "raw_token", "token"]

SECRET = b"an hmac secret for tests, 64 bytes long, so that HS512 takes it."

Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | bytes


@cache
def private(algorithm: str, name: str = "") -> Private:
    """The private key for an algorithm; another one for every name."""
    if algorithm.startswith("HS"):
        return SECRET
    if algorithm[:2] in ("RS", "PS"):
        return rsa.generate_private_key(65_537, 2048)
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(
        {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}[algorithm]
    )


def public_pem(algorithm: str, name: str = "") -> bytes:
    """The public key as PEM."""
    key = private(algorithm, name)
    assert not isinstance(key, bytes)
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private_pem(algorithm: str, name: str = "") -> bytes:
    """The private key as PEM."""
    key = private(algorithm, name)
    assert not isinstance(key, bytes)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def jwk(algorithm: str, name: str = "", **members: Any) -> dict[str, Any]:
    """The public key as JWK; its id is the name."""
    key = private(algorithm, name)
    if isinstance(key, bytes):
        found = HMACAlgorithm.to_jwk(key, as_dict=True)
    elif isinstance(key, rsa.RSAPrivateKey):
        found = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, ed25519.Ed25519PrivateKey):
        found = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        found = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    found.pop("key_ops", None)
    return {**found, **({"kid": name} if name else {}), **members}


def jwks(*keys: dict[str, Any]) -> bytes:
    """A key set."""
    return json.dumps({"keys": keys}).encode()


def claims(**others: Any) -> dict[str, Any]:
    """Claims of a good token; None leaves one out."""
    found = {"sub": "ann", "exp": int(time.time()) + 600, **others}
    return {name: value for name, value in found.items() if value is not None}


def token(algorithm: str = "RS256", name: str = "", *, kid: str | None = None, **others: Any) -> str:
    """A token signed by that key; `kid` defaults to the name."""
    kid = kid or name or None
    headers = {"kid": kid} if kid else None
    return jwt.encode(claims(**others), private(algorithm, name), algorithm, headers)


def encode(part: Any) -> str:
    """A part of a token."""
    data = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def raw_token(header: Any, payload: Any, secret: bytes | None = None) -> str:
    """A token that no library would sign: with an HMAC of `secret`, or with no signature."""
    signed = f"{encode(header)}.{encode(payload)}"
    signature = b"" if secret is None else hmac.digest(secret, signed.encode(), "sha256")
    return f"{signed}.{encode(signature)}"
