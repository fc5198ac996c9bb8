"""Public keys for tokens, from a JWKS (RFC 7517) or from PEM blocks.

Pure: bytes in, keys out. A key says itself what it may verify, from its type, curve and size: whatever a token's header
claims, an RSA key never becomes the secret of an HMAC. Left out are keys for encryption, private keys, and keys that
are too short (RSA below 2048 bits; an HMAC secret below the size of its hash, RFC 7518 section 3.2).
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK, PyJWTError

__all__ = ["ALGORITHMS", "BadKeysError", "Key", "matching", "read_keys"]

MOST_KEYS = 32  # a token without a key id is tried with each that fits
LEAST_RSA_BITS = 2048

_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_EC = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512", "secp256k1": "ES256K"}
_HMAC = {"HS256": 32, "HS384": 48, "HS512": 64}
ALGORITHMS = frozenset({*_RSA, *_EC.values(), *_HMAC, "EdDSA"})
"""All that can be verified; `none` is not one of them."""

_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,40})-----.*?-----END \1-----", re.DOTALL)

Material = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey | bytes


class BadKeysError(Exception):
    """There is no usable key; says why."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key.

    Attributes:
        kid: its id; None fits any token.
        algorithms: what it may verify.
        material: as PyJWT takes it.
    """

    kid: str | None
    algorithms: frozenset[str]
    material: Material


def matching(keys: tuple[Key, ...], kid: str | None, algorithm: str) -> tuple[Key, ...]:
    """Those of `keys` that may have signed a token with this header."""
    return tuple(key for key in keys if algorithm in key.algorithms and (kid is None or key.kid in (kid, None)))


def read_keys(text: bytes) -> tuple[Key, ...]:
    """The usable keys of a JWKS, a single JWK, or PEM public keys and certificates.

    Raises:
        BadKeysError: there is none.
    """
    keys = _read_pem(text) if b"-----BEGIN " in text else _read_jwks(text)
    if not keys:
        raise BadKeysError("no usable key for signatures")
    if len(keys) > MOST_KEYS:
        raise BadKeysError(f"more than {MOST_KEYS} keys")
    return keys


def _read_pem(text: bytes) -> tuple[Key, ...]:
    return tuple(_key(None, _read_block(match[1], match[0])) for match in _PEM.finditer(text))


def _read_block(kind: bytes, block: bytes) -> Material:
    try:
        if kind == b"CERTIFICATE":
            material: object = x509.load_pem_x509_certificate(block).public_key()
        elif kind.endswith(b"PRIVATE KEY"):
            raise BadKeysError("a private key: give the public one, here it verifies only")
        else:
            material = load_pem_public_key(block)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadKeysError(f"an unreadable {kind.decode('ascii')}") from error
    if not isinstance(material, Material) or not _fitting(material):
        raise BadKeysError("a key that is too short, or of a kind that signs no tokens")
    return material


def _read_jwks(text: bytes) -> tuple[Key, ...]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise BadKeysError("neither JSON nor PEM") from None
    if isinstance(document, dict) and "kty" in document:
        document = {"keys": [document]}
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise BadKeysError('no JWKS: "keys" is missing')
    found = (_read_jwk(entry) for entry in entries[: MOST_KEYS * 4] if isinstance(entry, dict))
    return tuple(key for key in found if key is not None)


def _read_jwk(entry: dict[str, Any]) -> Key | None:
    """The key; None for one that is of no use here: a set may hold others, also ones not known yet."""
    operations = entry.get("key_ops")
    if entry.get("use", "sig") != "sig" or (isinstance(operations, list) and "verify" not in operations):
        return None
    public = {name: value for name, value in entry.items() if name != "alg"}
    try:
        material = PyJWK(public).key
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError, AttributeError):
        return None
    kid, named = entry.get("kid"), entry.get("alg")
    if not isinstance(material, Material) or not isinstance(kid, str | None):
        return None
    key = _key(kid, material)
    if named is not None:
        key = Key(kid, key.algorithms & {named} if isinstance(named, str) else frozenset(), material)
    return key if key.algorithms else None


def _key(kid: str | None, material: Material) -> Key:
    return Key(kid, _fitting(material), material)


def _fitting(material: Material) -> frozenset[str]:
    """The algorithms a key may be used with."""
    if isinstance(material, bytes):
        return frozenset(name for name, least in _HMAC.items() if len(material) >= least)
    if isinstance(material, RSAPublicKey):
        return _RSA if material.key_size >= LEAST_RSA_BITS else frozenset()
    if isinstance(material, EllipticCurvePublicKey):
        return frozenset({_EC[material.curve.name]} if material.curve.name in _EC else ())
    return frozenset({"EdDSA"})
