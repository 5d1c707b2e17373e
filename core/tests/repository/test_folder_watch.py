from __future__ import annotations

import importlib.util
import logging
import os
import sys
import threading

import pytest

from tritonpy import install_command
from tritonpy.repository.folder_watch import FolderWatch

watched = pytest.mark.skipif(importlib.util.find_spec("watchfiles") is None, reason="needs watchfiles")


@pytest.fixture
def change():
    return threading.Event()


@watched
@pytest.mark.parametrize("kind", ["new file", "new folder", "content", "removal"])
def test_a_change_below_the_folder_calls_the_callback(tmp_path, change, kind):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model").write_text("old")
    watch = FolderWatch.start(tmp_path, change.set)
    numbers = iter(range(10_000))

    def act():
        if kind == "new file":
            (tmp_path / "m" / f"file {next(numbers)}").write_text("new")
        elif kind == "new folder":
            (tmp_path / f"model {next(numbers)}").mkdir()
        elif kind == "content":
            (tmp_path / "m" / "1" / "model").write_text(f"new {next(numbers)}")
        elif next(numbers) % 2:
            (tmp_path / "m" / "1" / "model").write_text("again")
        else:
            (tmp_path / "m" / "1" / "model").unlink()

    for _ in range(60):  # changes before the watch has started are not seen, so repeat them
        act()
        if change.wait(1):
            break
    assert change.is_set()
    watch.stop()
    assert not any(thread.name.startswith("watch") for thread in threading.enumerate())


@watched
def test_a_missing_folder_is_left_to_polls(tmp_path, change, caplog):
    watch = FolderWatch.start(tmp_path / "none", change.set)
    watch._thread.join(30)
    assert "changes are detected by polling" in caplog.text
    watch.stop()


def test_a_failure_of_the_watch_is_left_to_polls(tmp_path, change, caplog):
    def watch(*_, **__):
        raise OSError(28, os.strerror(28))

    failing = FolderWatch(watch, tmp_path, change.set)
    failing._run()
    assert "No space left on device" in caplog.text


def test_every_reported_change_calls_the_callback(tmp_path):
    calls = []
    FolderWatch(lambda *_, **__: iter([{1}, {2}]), tmp_path, lambda: calls.append(1))._run()
    assert calls == [1, 1]


def test_without_the_package_there_is_no_watch(tmp_path, change, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, "tritonpy")
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert FolderWatch.start(tmp_path, change.set) is None
    assert install_command("tritonpy[watch]") in caplog.text
