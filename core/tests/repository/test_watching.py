from __future__ import annotations

import importlib.util
import logging
import os
import sys
import threading

import pytest

from tritonpy import install_command
from tritonpy.repository.watching import FolderWatch

watched = pytest.mark.skipif(importlib.util.find_spec("watchfiles") is None, reason="needs watchfiles")


@pytest.fixture
def change():
    return threading.Event()


@watched
@pytest.mark.parametrize("what", ["new file", "new folder", "content", "removal"])
def test_a_change_below_the_folder_is_told(tmp_path, change, what):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model").write_text("old")
    watch = FolderWatch.start(tmp_path, change.set)
    numbers = iter(range(10_000))

    def act():
        if what == "new file":
            (tmp_path / "m" / f"file {next(numbers)}").write_text("new")
        elif what == "new folder":
            (tmp_path / f"model {next(numbers)}").mkdir()
        elif what == "content":
            (tmp_path / "m" / "1" / "model").write_text(f"new {next(numbers)}")
        elif next(numbers) % 2:
            (tmp_path / "m" / "1" / "model").write_text("again")
        else:
            (tmp_path / "m" / "1" / "model").unlink()

    for _ in range(60):  # when the watch begins is not told: until it does, changes are not seen
        act()
        if change.wait(1):
            break
    assert change.is_set()
    watch.stop()
    assert not any(thread.name.startswith("watch") for thread in threading.enumerate())


@watched
def test_a_folder_that_is_not_there_is_left_to_polls(tmp_path, change, caplog):
    watch = FolderWatch.start(tmp_path / "none", change.set)
    watch._thread.join(30)
    assert "cannot be watched, polls find them" in caplog.text
    watch.stop()


def test_a_failure_of_the_watch_is_left_to_polls(tmp_path, change, caplog):
    def watch(*_, **__):
        raise OSError(28, os.strerror(28))

    failing = FolderWatch(watch, tmp_path, change.set)
    failing._run()
    assert "No space left on device" in caplog.text


def test_every_change_that_the_watch_tells_is_passed_on(tmp_path):
    told = []
    FolderWatch(lambda *_, **__: iter([{1}, {2}]), tmp_path, lambda: told.append(1))._run()
    assert told == [1, 1]


def test_without_the_package_there_is_no_watch(tmp_path, change, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, "tritonpy")
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert FolderWatch.start(tmp_path, change.set) is None
    assert install_command("tritonpy[watch]") in caplog.text
