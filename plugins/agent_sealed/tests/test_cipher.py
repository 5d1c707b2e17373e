from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.cipher import MAGIC, PIECE, decrypted, encrypted, plain

KEY = bytes(range(32))
HEAD = len(MAGIC) + 16
SIZES = [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 5]


def shut(content: bytes, name: str = "f", key: bytes = KEY) -> bytes:
    return b"".join(encrypted(io.BytesIO(content), key, name))


def opened(stored: bytes, name: str = "f", key: bytes = KEY) -> bytes:
    return b"".join(decrypted(io.BytesIO(stored), key, name))


@pytest.mark.parametrize("size", SIZES)
def test_what_went_in_comes_out_and_costs_sixteen_bytes_a_piece(size):
    content = bytes(size)
    stored = shut(content)
    assert opened(stored) == content
    assert len(stored) == HEAD + size + 16 * max(1, -(-size // PIECE))


def test_the_same_file_never_looks_the_same_twice():
    assert shut(b"a") != shut(b"a")


@pytest.mark.parametrize(("name", "key"), [("g", KEY), ("f", bytes(32))])
def test_another_name_or_key_opens_nothing(name, key):
    with pytest.raises(InvalidArgument, match=f"the file of {name} cannot be decrypted"):
        opened(shut(b"content"), name, key)


@given(st.data())
def test_no_byte_can_be_changed(data):
    stored = bytearray(shut(b"content"))
    stored[data.draw(st.integers(0, len(stored) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InvalidArgument):
        opened(bytes(stored))


@pytest.mark.parametrize("size", [2 * PIECE, 2 * PIECE + 5])
def test_pieces_cannot_be_left_out_or_swapped(size):
    stored, step = shut(bytes(size)), PIECE + 16
    head, pieces = stored[:HEAD], [stored[at : at + step] for at in range(HEAD, len(stored), step)]
    for other in (pieces[:-1], pieces[1:], [pieces[1], pieces[0], *pieces[2:]], [*pieces, pieces[-1]], []):
        with pytest.raises(InvalidArgument):
            opened(head + b"".join(other))


@pytest.mark.parametrize("stored", [b"", MAGIC, b"x" * 100])
def test_what_is_no_encrypted_file_is_called_so(stored):
    with pytest.raises(InvalidArgument, match="the file of f is not an encrypted one"):
        opened(stored)


@pytest.mark.parametrize("size", SIZES)
def test_plain_files_come_in_pieces(size):
    pieces = list(plain(io.BytesIO(bytes(size))))
    assert b"".join(pieces) == bytes(size)
    assert max(map(len, pieces), default=0) <= PIECE
