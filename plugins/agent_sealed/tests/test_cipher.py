from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.cipher import MAGIC, PIECE, decrypt_pieces, encrypt_pieces, read_pieces

KEY = bytes(range(32))
HEAD = len(MAGIC) + 16
SIZES = [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 5]


def encrypt(content: bytes, name: str = "f", key: bytes = KEY) -> bytes:
    return b"".join(encrypt_pieces(io.BytesIO(content), key, name))


def decrypt(stored: bytes, name: str = "f", key: bytes = KEY) -> bytes:
    return b"".join(decrypt_pieces(io.BytesIO(stored), key, name))


@pytest.mark.parametrize("size", SIZES)
def test_decryption_restores_the_content_with_16_bytes_overhead_per_piece(size):
    content = bytes(size)
    stored = encrypt(content)
    assert decrypt(stored) == content
    assert len(stored) == HEAD + size + 16 * max(1, -(-size // PIECE))


def test_encrypting_twice_gives_different_bytes():
    assert encrypt(b"a") != encrypt(b"a")


@pytest.mark.parametrize(("name", "key"), [("g", KEY), ("f", bytes(32))])
def test_another_name_or_key_fails(name, key):
    with pytest.raises(InvalidArgument, match=f"the file of {name} cannot be decrypted"):
        decrypt(encrypt(b"content"), name, key)


@given(st.data())
def test_no_byte_can_be_changed(data):
    stored = bytearray(encrypt(b"content"))
    stored[data.draw(st.integers(0, len(stored) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InvalidArgument):
        decrypt(bytes(stored))


@pytest.mark.parametrize("size", [2 * PIECE, 2 * PIECE + 5])
def test_pieces_cannot_be_removed_or_swapped(size):
    stored, step = encrypt(bytes(size)), PIECE + 16
    head, pieces = stored[:HEAD], [stored[at : at + step] for at in range(HEAD, len(stored), step)]
    for other in (
        pieces[:-1],
        pieces[1:],
        [pieces[1], pieces[0], *pieces[2:]],
        [*pieces, pieces[-1]],
        [],
    ):
        with pytest.raises(InvalidArgument):
            decrypt(head + b"".join(other))


@pytest.mark.parametrize("stored", [b"", MAGIC, b"x" * 100])
def test_an_unencrypted_file_is_rejected(stored):
    with pytest.raises(InvalidArgument, match="the file of f is not encrypted"):
        decrypt(stored)


@pytest.mark.parametrize("size", SIZES)
def test_plain_files_come_in_pieces(size):
    pieces = list(read_pieces(io.BytesIO(bytes(size))))
    assert b"".join(pieces) == bytes(size)
    assert max(map(len, pieces), default=0) <= PIECE
