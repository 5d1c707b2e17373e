from __future__ import annotations

import logging
import os
import threading
import time

import pytest

from tritonpy.access.refreshed import ChangedFile, Refreshed

LOG = logging.getLogger("tritonpy.access")
PATIENCE_S = 20


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


def parse(text):
    if "broken" in text:
        raise ValueError("broken content")
    return text


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "keys"
    path.write_text("one")
    return path


@pytest.fixture
def watched(file):
    changed = ChangedFile(file, parse)
    refreshed = Refreshed(changed.first(), changed, "the keys", 0.01, LOG)
    refreshed.start()
    yield refreshed
    refreshed.close()


def test_a_change_is_read(file, watched):
    assert watched.value == "one"
    file.write_text("two two")
    until(lambda: watched.value == "two two")


def test_a_file_that_is_replaced_is_read(file, watched):
    other = file.with_name("other")
    other.write_text("new")
    os.replace(other, file)
    until(lambda: watched.value == "new")


def test_a_broken_file_changes_nothing_and_is_told_of_once(file, watched, caplog):
    file.write_text("broken")
    until(lambda: "broken content" in caplog.text)
    file.write_text("broken again")
    file.write_text("good again")
    until(lambda: watched.value == "good again")
    assert caplog.text.count("the keys: not read, what was read before stays in force") == 1


def test_a_file_that_is_gone_changes_nothing(file, watched, caplog):
    file.unlink()
    until(lambda: "FileNotFoundError" in caplog.text)
    assert watched.value == "one"
    file.write_text("back")
    until(lambda: watched.value == "back")


def test_a_file_is_read_when_two_looks_have_found_the_same(file):
    changed = ChangedFile(file, parse)
    assert changed.first() == "one"
    file.write_text("half of a l")
    assert changed() is None
    file.write_text("half of a line and the rest")
    assert changed() is None
    assert changed() == "half of a line and the rest"
    assert changed() is None


def test_a_reading_can_be_asked_for_and_close_ends_the_thread():
    readings = threading.Semaphore(0)
    refreshed = Refreshed(0, lambda: readings.release() or 1, "numbers", 3600, LOG)
    refreshed.start()
    refreshed.ask()
    assert readings.acquire(timeout=PATIENCE_S)
    until(lambda: refreshed.value == 1)
    refreshed.close()
    assert not any(thread.name == "refresh numbers" for thread in threading.enumerate())


def test_readings_that_many_ask_for_keep_their_pause():
    readings = []
    refreshed = Refreshed(0, lambda: readings.append(0), "numbers", 3600, LOG, pause_s=3600)
    refreshed.start()
    for _ in range(100):
        refreshed.ask()
    refreshed.close()
    assert readings == []


def test_close_needs_no_start():
    Refreshed(0, lambda: None, "nothing", 1, LOG).close()
