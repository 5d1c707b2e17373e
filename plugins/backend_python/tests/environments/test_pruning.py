from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tritonpy_backend_python.environments import prune
from tritonpy_backend_python.environments.entry import Entry
from tritonpy_backend_python.environments.file_lock import FileLock


def never() -> None:
    raise AssertionError("it waits")


def environment(cache: Path, name: str, idle_days: float) -> Entry:
    entry = Entry(cache, name)
    entry.folder.mkdir()
    entry.complete("a source")
    lease = entry.borrow()
    assert lease
    lease.release()
    FileLock.exclusive(entry.lock, never).release()
    moment = time.time() - idle_days * 86400
    os.utime(cache / f"{name}.json", (moment, moment))
    return entry


def test_only_what_was_long_unused_goes(tmp_path: Path):
    environment(tmp_path, "young", 3)
    environment(tmp_path, "old", 8)
    assert prune(tmp_path, 7) == ["old"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["young", "young.json", "young.lock"]


def test_what_is_in_use_stays_however_old(tmp_path: Path):
    entry = environment(tmp_path, "old", 100)
    lease = entry.borrow()
    assert lease
    os.utime(tmp_path / "old.json", (1, 1))
    assert prune(tmp_path, 7) == []
    lease.release()
    os.utime(tmp_path / "old.json", (1, 1))
    assert prune(tmp_path, 7) == ["old"]


@pytest.mark.parametrize("alive", [True, False])
def test_what_is_unfinished_goes_unless_it_is_being_built(tmp_path: Path, alive: bool):
    entry = Entry(tmp_path, "half")
    entry.folder.mkdir()
    lock = FileLock.exclusive(entry.lock, never)
    if not alive:
        lock.release()
    assert prune(tmp_path, 7) == ([] if alive else ["half"])
    assert entry.folder.exists() == alive


def test_digests_that_nobody_needed_for_long_are_forgotten(tmp_path: Path):
    (tmp_path / "digests").mkdir()
    for name, age in (("old", 8), ("young", 1)):
        path = tmp_path / "digests" / name
        path.touch()
        os.utime(path, (time.time() - age * 86400,) * 2)
    prune(tmp_path, 7)
    assert [path.name for path in (tmp_path / "digests").iterdir()] == ["young"]


def test_a_folder_that_is_not_there_has_nothing_to_remove(tmp_path: Path):
    assert prune(tmp_path / "none", 0) == []
