from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import pytest

from tritonpy_backend_python.environments.entry import Entry


def finished(cache: Path) -> Entry:
    entry = Entry(cache, "name")
    entry.folder.mkdir()
    entry.complete("a source")
    return entry


def test_a_lease_keeps_others_from_being_alone_until_it_is_gone(tmp_path: Path):
    entry = finished(tmp_path)
    first, second = entry.borrow(), entry.borrow()
    assert first
    assert second
    first.release()
    assert entry.seize() is None
    del second
    gc.collect()
    assert entry.seize()


def test_a_cache_that_is_gone_or_cannot_be_written_is_no_trouble(tmp_path: Path):
    entry = finished(tmp_path)
    lease = entry.borrow()
    assert lease
    (tmp_path / "name.json").unlink()
    lease.release()


def test_both_ends_of_a_use_are_moments_of_use(tmp_path: Path):
    entry = finished(tmp_path)
    long_ago = time.time() - 10 * 86400
    os.utime(tmp_path / "name.json", (long_ago, long_ago))
    assert entry.idle_days() == pytest.approx(10, abs=0.01)
    lease = entry.borrow()
    assert lease
    assert entry.idle_days() < 0.01
    os.utime(tmp_path / "name.json", (long_ago, long_ago))
    lease.release()
    assert entry.idle_days() < 0.01
    os.utime(tmp_path / "name.json", (long_ago, long_ago))
    lease.release()
    assert entry.idle_days() > 9, "a second release is none"
