from __future__ import annotations

import contextlib
import logging
import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tritonpy import Internal
from tritonpy_backend_python.environments.cache import UNUSED_DAYS, EnvironmentCache, cache_folder
from tritonpy_backend_python.environments.entry import EnvironmentEntry
from tritonpy_backend_python.environments.lease import EnvironmentLease

Log = logging.LoggerAdapter[logging.Logger]


def nothing(folder: Path, lock: int) -> None:
    (folder / "built").touch()


def test_a_built_environment_is_reused(cache: EnvironmentCache, log: Log):
    first = cache.obtain("name", "a source", nothing, log)
    second = cache.obtain("name", "a source", lambda *_: pytest.fail("the environment exists"), log)
    assert first.folder == second.folder == cache.folder / "name"
    assert (first.folder / "built").exists()


def test_the_folder_is_private(cache: EnvironmentCache, log: Log):
    cache.obtain("name", "a source", nothing, log)
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700


def test_the_folder_is_created_by_the_first_build(cache: EnvironmentCache):
    assert not cache.folder.exists()


def test_a_failed_build_leaves_no_files(cache: EnvironmentCache, log: Log):
    def fails(folder: Path, lock: int) -> None:
        (folder / "half").touch()
        raise Internal("no")

    with pytest.raises(Internal, match="no"):
        cache.obtain("name", "a source", fails, log)
    assert list(cache.folder.iterdir()) == []
    assert not (cache.obtain("name", "a source", nothing, log).folder / "half").exists()


def test_remains_of_a_dead_process_are_removed_first(cache: EnvironmentCache, log: Log):
    (cache.folder / "name").mkdir(parents=True)
    (cache.folder / "name" / "half").touch()
    assert not (cache.obtain("name", "a source", nothing, log).folder / "half").exists()


def test_concurrent_loads_build_once(
    cache: EnvironmentCache, log: Log, caplog: pytest.LogCaptureFixture
):
    builds = []
    others_wait = threading.Event()

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "waiting for another load" in record.getMessage():
                others_wait.set()

    def build(folder: Path, lock: int) -> None:
        assert others_wait.wait(30)
        builds.append(folder)

    watch = Watch()
    logging.getLogger("tritonpy.test").addHandler(watch)
    with contextlib.closing(watch), ThreadPoolExecutor(4) as pool:
        leases = list(pool.map(lambda _: cache.obtain("name", "a source", build, log), range(4)))
    logging.getLogger("tritonpy.test").removeHandler(watch)
    assert builds == [cache.folder / "name"]
    assert {lease.folder for lease in leases} == {cache.folder / "name"}


def test_waiting_for_a_build_does_not_wait_for_its_users(cache: EnvironmentCache, log: Log):
    """One of several loads builds and uses the environment; the others do not wait for its end."""
    looked = threading.Barrier(3)
    acquire = EnvironmentEntry.acquire

    def look_together(entry: EnvironmentEntry) -> EnvironmentLease | None:
        lease = acquire(entry)
        if lease is None:
            with contextlib.suppress(threading.BrokenBarrierError):
                looked.wait(30)
            looked.abort()
        return lease

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(3) as pool:
        patch.setattr(EnvironmentEntry, "acquire", look_together)
        leases = list(pool.map(lambda _: cache.obtain("name", "a source", nothing, log), range(3)))
    assert len(leases) == 3


def test_a_read_only_cache_can_be_used(cache: EnvironmentCache, log: Log):
    cache.obtain("name", "a source", nothing, log).release()
    (cache.folder / "name.lock").unlink()
    assert cache.obtain("name", "a source", nothing, log).folder.exists()
    assert not (cache.folder / "name.lock").exists(), "a read-only cache was written to"


def test_a_build_removes_unused_environments(
    cache: EnvironmentCache, log: Log, caplog: pytest.LogCaptureFixture
):
    cache.obtain("old", "a source", nothing, log).release()
    used = cache.obtain("used", "a source", nothing, log)
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86400
    for name in ("old", "used"):
        os.utime(cache.folder / f"{name}.json", (long_ago, long_ago))
    cache.obtain("new", "a source", nothing, log)
    assert not (cache.folder / "old").exists()
    assert used.folder.exists()
    assert "removed unused Python environments: old" in caplog.text


def test_a_folder_that_cannot_be_created_is_reported_with_the_option(tmp_path: Path, log: Log):
    (tmp_path / "file").touch()
    with pytest.raises(
        Internal, match=r"'.*/file/cache' cannot be created: Not a directory; .* environments-dir"
    ):
        EnvironmentCache(tmp_path / "file" / "cache").obtain("name", "a source", nothing, log)


def test_a_world_writable_default_folder_is_rejected(tmp_path: Path, log: Log):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(
        Internal, match=r"cannot be created: everybody may write into it; .* environments-dir"
    ):
        EnvironmentCache(tmp_path / "cache", configured=False).obtain(
            "name", "a source", nothing, log
        )


def test_a_world_writable_configured_folder_is_a_warning(
    tmp_path: Path, log: Log, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    EnvironmentCache(tmp_path / "cache").obtain("name", "a source", nothing, log).release()
    assert "is not safe: everybody may write into it" in caplog.text


def test_the_default_is_the_users_cache(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/of")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder("") == Path("/xdg/tritonpy/environments")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder("") == Path("/home/of/.cache/tritonpy/environments")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder("") == Path("/home/of/.cache/tritonpy/environments")
    assert cache_folder("~/mine") == Path("/home/of/mine")
    assert cache_folder("here").is_absolute()
