from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tritonpy_backend_python.environments import prune
from tritonpy_backend_python.environments.entry import EnvironmentEntry
from tritonpy_backend_python.environments.file_lock import FileLock


def unexpected_wait() -> None:
    raise AssertionError("waited for the lock")


def environment(cache: Path, name: str, idle_days: float) -> EnvironmentEntry:
    entry = EnvironmentEntry(cache, name)
    entry.folder.mkdir()
    entry.complete("a source")
    lease = entry.acquire()
    assert lease
    lease.release()
    FileLock.exclusive(entry.lock, unexpected_wait).release()
    last_use = time.time() - idle_days * 86400
    os.utime(cache / f"{name}.json", (last_use, last_use))
    return entry


def test_only_long_unused_environments_are_removed(tmp_path: Path):
    environment(tmp_path, "young", 3)
    environment(tmp_path, "old", 8)
    assert prune(tmp_path, 7) == ["old"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["young", "young.json", "young.lock"]


def test_environments_in_use_are_kept(tmp_path: Path):
    entry = environment(tmp_path, "old", 100)
    lease = entry.acquire()
    assert lease
    os.utime(tmp_path / "old.json", (1, 1))
    assert prune(tmp_path, 7) == []
    lease.release()
    os.utime(tmp_path / "old.json", (1, 1))
    assert prune(tmp_path, 7) == ["old"]


@pytest.mark.parametrize("alive", [True, False])
def test_incomplete_environments_are_removed_unless_they_are_being_built(
    tmp_path: Path, alive: bool
):
    entry = EnvironmentEntry(tmp_path, "half")
    entry.folder.mkdir()
    lock = FileLock.exclusive(entry.lock, unexpected_wait)
    if not alive:
        lock.release()
    assert prune(tmp_path, 7) == ([] if alive else ["half"])
    assert entry.folder.exists() == alive


def test_old_digests_are_removed(tmp_path: Path):
    (tmp_path / "digests").mkdir()
    for name, age in (("old", 8), ("young", 1)):
        path = tmp_path / "digests" / name
        path.touch()
        os.utime(path, (time.time() - age * 86400,) * 2)
    prune(tmp_path, 7)
    assert [path.name for path in (tmp_path / "digests").iterdir()] == ["young"]


def test_a_missing_folder_is_ignored(tmp_path: Path):
    assert prune(tmp_path / "none", 0) == []
