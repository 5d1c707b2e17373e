from __future__ import annotations

import errno
import fcntl
import mmap
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tritonpy_ipc import memory_file

from .exchange import descriptors

SIZE = 1 << 16
F_ADD_SEALS, SEAL_SEAL = 1033, 1


@pytest.fixture(params=["memfd", "file", "file without reservation"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Create memory in each of the ways that platforms need."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if request.param != "memfd":
        monkeypatch.delattr(os, "memfd_create")
    if request.param == "file without reservation":
        monkeypatch.delattr(os, "posix_fallocate")
    return request.param


def test_two_maps_show_the_same_zeros_and_then_the_same_bytes(kind: str, tmp_path: Path) -> None:
    before = descriptors()
    descriptor = memory_file.create(SIZE)
    assert list(tmp_path.iterdir()) == [], "it has a name"
    one, other = memory_file.map_whole(descriptor), mmap.mmap(descriptor, SIZE)
    os.close(descriptor)
    assert (len(one), one[:], kind) == (SIZE, bytes(SIZE), kind)
    one[7:10] = b"abc"
    assert other[7:10] == b"abc"
    one.close()
    other.close()
    assert descriptors() == before


def test_memory_is_not_inherited_by_programs_that_are_started(kind: str) -> None:
    descriptor = memory_file.create(SIZE)
    assert not os.get_inheritable(descriptor), kind
    os.close(descriptor)


@pytest.mark.parametrize(("way", "function"), [("memfd", "ftruncate"), ("file", "posix_fallocate")])
def test_no_descriptor_leaks_when_memory_is_exhausted(
    way: str, function: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_arguments: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if way == "file":
        monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(os, function, full)
    before = descriptors()
    with pytest.raises(OSError, match="No space left on device"):
        memory_file.create(SIZE)
    assert descriptors() <= before  # objects of earlier tests may close meanwhile
    assert list(tmp_path.iterdir()) == []


def test_memory_on_a_disk_is_reserved_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    descriptor = memory_file.create(SIZE)
    assert os.fstat(descriptor).st_blocks * 512 >= SIZE
    os.close(descriptor)


SHRINKING = """
import mmap, os, sys
from tritonpy_ipc import memory_file
descriptor = memory_file.create(1 << 16)
memory = memory_file.map_whole(descriptor) if sys.argv[1] == "ours" else mmap.mmap(descriptor, 1 << 16)
try:
    os.ftruncate(descriptor, 0)
except PermissionError:
    print("refused")
print(memory[5000])
"""


def shrink(whose: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SHRINKING, whose], capture_output=True, text=True, check=False
    )


def test_a_worker_cannot_shrink_the_memory_of_the_server() -> None:
    assert shrink("somebody's").returncode == -7, "SIGBUS is what the seal is there for"
    done = shrink("ours")
    assert (done.returncode, done.stdout) == (0, "refused\n0\n")


def test_memory_that_refuses_the_seal_is_refused() -> None:
    descriptor = memory_file.create(SIZE)
    fcntl.fcntl(descriptor, F_ADD_SEALS, SEAL_SEAL)
    with pytest.raises(PermissionError):
        memory_file.map_whole(descriptor)
    os.close(descriptor)


def test_other_descriptors_cannot_be_mapped(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "read only").write_bytes(bytes(SIZE))
    read, write = os.pipe()
    others = [
        os.open(path, os.O_RDONLY) for path in ("/dev/null", tmp_path, *sorted(tmp_path.iterdir()))
    ]
    before = descriptors()
    for descriptor in (read, write, *others):
        with pytest.raises((OSError, ValueError)):
            memory_file.map_whole(descriptor)
    assert descriptors() == before
    for descriptor in (read, write, *others):
        os.close(descriptor)
