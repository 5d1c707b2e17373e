from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import pytest

from tritonpy_backend_python.environments.entry import EnvironmentEntry


def finished(cache: Path) -> EnvironmentEntry:
    entry = EnvironmentEntry(cache, "name")
    entry.folder.mkdir()
    entry.complete("a source")
    return entry


def test_leases_prevent_an_exclusive_lock(tmp_path: Path):
    entry = finished(tmp_path)
    first, second = entry.acquire(), entry.acquire()
    assert first
    assert second
    first.release()
    assert entry.lock_exclusively() is None
    del second
    gc.collect()
    assert entry.lock_exclusively()


def test_release_ignores_a_missing_stamp(tmp_path: Path):
    entry = finished(tmp_path)
    lease = entry.acquire()
    assert lease
    (tmp_path / "name.json").unlink()
    lease.release()


def test_begin_and_end_of_a_use_reset_the_idle_time(tmp_path: Path):
    entry = finished(tmp_path)
    long_ago = time.time() - 10 * 86400
    os.utime(tmp_path / "name.json", (long_ago, long_ago))
    assert entry.idle_days() == pytest.approx(10, abs=0.01)
    lease = entry.acquire()
    assert lease
    assert entry.idle_days() < 0.01
    os.utime(tmp_path / "name.json", (long_ago, long_ago))
    lease.release()
    assert entry.idle_days() < 0.01
    os.utime(tmp_path / "name.json", (long_ago, long_ago))
    lease.release()
    assert entry.idle_days() > 9, "a second release counts as a use"
