from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tritonpy_backend_python.environments.file_lock import FileLock


def unexpected_wait() -> None:
    raise AssertionError("waited for the lock")


def test_an_exclusive_lock_excludes_all_others(tmp_path: Path):
    path = tmp_path / "lock"
    with FileLock.exclusive(path, unexpected_wait):
        assert FileLock.try_exclusive(path) is None
        assert FileLock.try_shared(path) is None
    first, second = FileLock.try_shared(path), FileLock.try_shared(path)
    assert first
    assert second
    first.release()
    assert FileLock.try_exclusive(path) is None
    second.release()
    assert FileLock.try_exclusive(path)


def test_waiting_is_reported_and_ends_with_the_release(tmp_path: Path):
    holder = FileLock.exclusive(tmp_path / "lock", unexpected_wait)
    with FileLock.exclusive(tmp_path / "lock", holder.release):
        assert not holder.release.alive


def test_only_waiting_creates_the_file(tmp_path: Path):
    assert FileLock.try_exclusive(tmp_path / "lock") is None
    assert FileLock.try_shared(tmp_path / "lock") is None
    assert list(tmp_path.iterdir()) == []


def test_a_deleted_lock_object_releases_the_lock(tmp_path: Path):
    lock = FileLock.exclusive(tmp_path / "lock", unexpected_wait)
    assert lock.descriptor > 0
    del lock
    gc.collect()
    FileLock.exclusive(tmp_path / "lock", unexpected_wait).release()


def test_a_lock_on_a_deleted_file_is_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, flock = tmp_path / "lock", fcntl.flock
    monkeypatch.setattr(
        fcntl, "flock", lambda descriptor, mode: (flock(descriptor, mode), delete_once())
    )
    times = iter([path.unlink])

    def delete_once() -> None:
        next(times, lambda: None)()

    with FileLock.exclusive(path, unexpected_wait) as lock:
        assert path.stat().st_ino == os.fstat(lock.descriptor).st_ino
        assert next(times, None) is None


def test_a_child_that_inherits_the_descriptor_keeps_the_lock(tmp_path: Path):
    lock = FileLock.exclusive(tmp_path / "lock", unexpected_wait)
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"],
        stdin=subprocess.PIPE,
        pass_fds=(lock.descriptor,),
        text=True,
    )
    with child:
        lock.release()
        assert FileLock.try_exclusive(tmp_path / "lock") is None
        child.communicate("\n")
    FileLock.exclusive(tmp_path / "lock", unexpected_wait).release()
