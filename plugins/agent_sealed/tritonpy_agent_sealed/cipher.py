"""File encryption: AES-256-GCM in pieces of a mebibyte, so that no file is in memory as a whole.

A file begins with `MAGIC` and a salt of 16 bytes. Its key is derived from the model's key by
HKDF-SHA256 over the salt and the file's path. So no two files share a key, and no file can replace
another. The nonce of a piece is its number in 11 bytes and whether it is the last. Missing, added
or reordered pieces fail to decrypt (the STREAM construction of Hoang, Reyhanitabar, Rogaway and
Vizár, 2015).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tritonpy import InvalidArgument

MAGIC = b"TRITONPY SEALED\n"
PIECE = 1 << 20
_SALT, _TAG = 16, 16


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, fewer only at the end."""


def encrypt_pieces(source: Readable, key: bytes, name: str) -> Iterator[bytes]:
    """Yield the encrypted form of a file whose path in the model is `name`."""
    salt = os.urandom(_SALT)
    yield MAGIC + salt
    cipher = _cipher(key, salt, name)
    for number, piece, last in _pieces(source, PIECE):
        yield cipher.encrypt(_nonce(number, last), piece, None)


def decrypt_pieces(source: Readable, key: bytes, name: str) -> Iterator[bytes]:
    """Yield the content of an encrypted file.

    Raises `InvalidArgument` if it was not encrypted under that name with that key.
    """
    head = source.read(len(MAGIC) + _SALT)
    if len(head) != len(MAGIC) + _SALT or not head.startswith(MAGIC):
        raise InvalidArgument(f"the file of {name} is not encrypted")
    cipher = _cipher(key, head[len(MAGIC) :], name)
    for number, piece, last in _pieces(source, PIECE + _TAG):
        try:
            yield cipher.decrypt(_nonce(number, last), piece, None)
        except InvalidTag:
            raise InvalidArgument(
                f"the file of {name} cannot be decrypted: it was changed or belongs to another path"
            ) from None


def read_pieces(source: Readable) -> Iterator[bytes]:
    """Yield the content of an unencrypted file."""
    while piece := source.read(PIECE):
        yield piece


def _cipher(key: bytes, salt: bytes, name: str) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt, b"tritonpy sealed file\0" + name.encode()).derive(key))


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _pieces(source: Readable, size: int) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (number, content, is last) of each piece. An empty file is one empty piece."""
    number, piece = 0, source.read(size)
    while True:
        following = source.read(size)
        yield number, piece, not following
        if not following:
            return
        number, piece = number + 1, following
