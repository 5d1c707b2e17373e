"""Keys for signatures and encryption."""

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


def environment_location(name: str) -> str:
    """Return the location string of a key in an environment variable."""
    return _ENVIRONMENT + name


def new_signing_key() -> tuple[bytes, bytes]:
    """Return a new Ed25519 key pair as PEM text: the private and the public key."""
    private = Ed25519PrivateKey.generate()
    return (
        private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    )


def new_encryption_key() -> bytes:
    """Return a new AES-256 key in base64."""
    return base64.b64encode(os.urandom(KEY_BYTES)) + b"\n"


def signing_key(location: str) -> Ed25519PrivateKey:
    """Read the private key. Raises `InvalidArgument`."""
    try:
        key = load_pem_private_key(_read(location), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidArgument(
            f"{location} holds no private key without a pass phrase, in PEM"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidArgument(f"{location} holds a key that is not of Ed25519")
    return key


def verify_key(location: str) -> Ed25519PublicKey:
    """Read a public key. Raises `InvalidArgument`."""
    try:
        key = load_pem_public_key(_read(location))
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidArgument(f"{location} holds no public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidArgument(f"{location} holds a key that is not of Ed25519")
    return key


def trusted_keys(locations: Sequence[str]) -> list[Ed25519PublicKey]:
    """Read the public keys. Unreadable keys are logged and ignored.

    Raises `InvalidArgument` if none can be read.
    """
    keys, problems = [], []
    for location in locations:
        try:
            keys.append(verify_key(location))
        except InvalidArgument as error:
            problems.append(error.message)
    if problems and not keys:
        raise InvalidArgument("; ".join(problems))
    for problem in problems:
        log.warning("models that it signed are not loaded: %s", problem)
    return keys


def encryption_key(location: str) -> bytes:
    """Read a key of 32 bytes. Raises InvalidArgument."""
    try:
        key = base64.b64decode(_read(location).strip(), validate=True)
    except ValueError:
        raise InvalidArgument(f"{location} holds no key in base64") from None
    if len(key) != KEY_BYTES:
        raise InvalidArgument(
            f"{location} holds a key of {len(key)} bytes, it must have {KEY_BYTES}"
        )
    return key


def key_id(key: bytes) -> str:
    """Return an id of the key that reveals nothing about it."""
    return hashlib.sha256(b"tritonpy sealed key id\0" + key).hexdigest()[:16]


def decryption_key(identity: str, known: Sequence[str]) -> bytes:
    """Return the key with id `identity` from the locations `known`. Raises `InvalidArgument`."""
    for location in known:
        key = encryption_key(location)
        if key_id(key) == identity:
            return key
    raise InvalidArgument(
        f"it is encrypted with the key {identity}, which is none of the server's {len(known)} "
        "decryption keys"
    )


def _read(location: str) -> bytes:
    if location.startswith(_ENVIRONMENT):
        name = location.removeprefix(_ENVIRONMENT)
        if name not in os.environ:
            raise InvalidArgument(
                f"the environment variable {name} is not set, it should hold a key"
            )
        return os.environ[name].encode()
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"the key {location} cannot be read: {error.strerror}") from error
