"""The keys: whose signature counts, and what files are encrypted with."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from tritonpy import InvalidArgument

KEY_BYTES = 32
log = logging.getLogger("tritonpy.repository")
_ENVIRONMENT = "env:"


def in_environment(name: str) -> str:
    """Return how the place of a key is written that an environment variable holds."""
    return _ENVIRONMENT + name


def new_signing_key() -> tuple[bytes, bytes]:
    """Return a new pair of Ed25519 keys as PEM text: the private one, which signs, and the public one."""
    private = Ed25519PrivateKey.generate()
    return (
        private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    )


def new_encryption_key() -> bytes:
    """Return a new key for AES-256 in base64."""
    return base64.b64encode(os.urandom(KEY_BYTES)) + b"\n"


def signing_key(where: str) -> Ed25519PrivateKey:
    """Read the private key. Raises InvalidArgument."""
    try:
        key = load_pem_private_key(_read(where), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidArgument(f"{where} holds no private key without a pass phrase, in PEM") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidArgument(f"{where} holds a key that is not of Ed25519")
    return key


def verify_key(where: str) -> Ed25519PublicKey:
    """Read a public key. Raises InvalidArgument."""
    try:
        key = load_pem_public_key(_read(where))
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidArgument(f"{where} holds no public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidArgument(f"{where} holds a key that is not of Ed25519")
    return key


def trusted_keys(places: Sequence[str]) -> list[Ed25519PublicKey]:
    """Read the public keys. One that cannot be read is logged and trusts nobody, the others still count. Raises InvalidArgument where none can be."""
    keys, problems = [], []
    for where in places:
        try:
            keys.append(verify_key(where))
        except InvalidArgument as error:
            problems.append(error.message)
    if problems and not keys:
        raise InvalidArgument("; ".join(problems))
    for problem in problems:
        log.warning("models that it signed are not loaded: %s", problem)
    return keys


def encryption_key(where: str) -> bytes:
    """Read a key of 32 bytes. Raises InvalidArgument."""
    try:
        key = base64.b64decode(_read(where).strip(), validate=True)
    except ValueError:
        raise InvalidArgument(f"{where} holds no key in base64") from None
    if len(key) != KEY_BYTES:
        raise InvalidArgument(f"{where} holds a key of {len(key)} bytes, it must have {KEY_BYTES}")
    return key


def key_id(key: bytes) -> str:
    """Return by what a model says which key it needs, without a word of the key itself."""
    return hashlib.sha256(b"tritonpy sealed key id\0" + key).hexdigest()[:16]


def decryption_key(wanted: str, known: Sequence[str]) -> bytes:
    """Return the key of that id, out of the places `known`. Raises InvalidArgument."""
    for where in known:
        key = encryption_key(where)
        if key_id(key) == wanted:
            return key
    raise InvalidArgument(
        f"it is encrypted with the key {wanted}, which is none of the server's {len(known)} decryption keys"
    )


def _read(where: str) -> bytes:
    if where.startswith(_ENVIRONMENT):
        name = where.removeprefix(_ENVIRONMENT)
        if name not in os.environ:
            raise InvalidArgument(f"the environment variable {name} is not set, it should hold a key")
        return os.environ[name].encode()
    try:
        return Path(where).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"the key {where} cannot be read: {error.strerror}") from error
