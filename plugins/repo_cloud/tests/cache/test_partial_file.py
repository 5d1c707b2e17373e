from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_repo_cloud.cache import partial_file as module
from tritonpy_repo_cloud.cache.partial_file import PIECE, PartialFile, pieces


@given(st.integers(0, 5 * PIECE))
def test_pieces_cover_a_file_once(size):
    found = pieces(size)
    assert [start for start, _ in found] == [0, *(end for _, end in found[:-1])][: len(found)]
    assert (found[-1][1] if found else 0) == size
    assert all(0 < end - start <= PIECE for start, end in found)


@given(st.integers(1, 60), st.data())
def test_written_pieces_are_not_missing_for_any_reader(size, data):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PIECE", 8)
        content = os.urandom(size)
        first = PartialFile(Path(folder) / "file", size)
        first.allocate()
        order = data.draw(st.permutations(pieces(size)))
        count = data.draw(st.integers(0, len(order)))
        for start, end in order[:count]:
            first.write(start, content[start:end])
        second = PartialFile(Path(folder) / "file", size)
        second.allocate()
        left = second.missing()
        assert left == (
            sorted(order[count:]) if size > 8 else pieces(size)
        )  # one piece needs no journal
        for start, end in left:
            second.write(start, content[start:end])
        assert second.finish().read_bytes() == content
        assert [each.name for each in Path(folder).iterdir()] == ["file"]


def test_a_truncated_journal_line_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 10)
    partial_file = PartialFile(tmp_path / "file", 300)
    partial_file.allocate()
    (tmp_path / "file.pieces").write_bytes(b"0\n10\n20\n1")
    assert len(partial_file.missing()) == 27
    (tmp_path / "file.pieces").write_bytes(b"0\n10\n2")
    assert len(partial_file.missing()) == 28


def test_a_file_of_another_size_starts_over(tmp_path):
    (tmp_path / "file").write_bytes(b"short")
    partial_file = PartialFile(tmp_path / "file", 100)
    assert not partial_file.is_allocated()
    partial_file.allocate()
    assert partial_file.is_allocated()


@pytest.mark.parametrize("left", [None, b"cut"], ids=["gone", "cut off"])
def test_a_journal_without_its_file_is_ignored(tmp_path, monkeypatch, left):
    monkeypatch.setattr(module, "PIECE", 10)
    (tmp_path / "file.pieces").write_bytes(b"0\n10\n20\n")
    if left is not None:
        (tmp_path / "file").write_bytes(left)
    partial_file = PartialFile(tmp_path / "file", 30)
    partial_file.allocate()
    assert len(partial_file.missing()) == 3


def test_a_disk_without_room_leaves_no_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", full)
    partial_file = PartialFile(tmp_path / "file", 100)
    with pytest.raises(OSError, match="full"):
        partial_file.allocate()
    assert list(tmp_path.iterdir()) == []
