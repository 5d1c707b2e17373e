from __future__ import annotations

import logging
import os
import threading
import time

import pytest

from tritonpy.auth.refreshed_value import ChangedFile, RefreshedValue

LOG = logging.getLogger("tritonpy.auth")
WAIT_S = 20


def until(condition):
    deadline = time.monotonic() + WAIT_S
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
    refreshed = RefreshedValue(changed.first(), changed, "the keys", 0.01, LOG)
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


def test_a_broken_file_changes_nothing_and_is_logged_once(file, watched, caplog):
    file.write_text("broken")
    until(lambda: "broken content" in caplog.text)
    file.write_text("broken again")
    file.write_text("good again")
    until(lambda: watched.value == "good again")
    assert caplog.text.count("the keys: read failed, the previous value stays in use") == 1


def test_a_missing_file_changes_nothing(file, watched, caplog):
    file.unlink()
    until(lambda: "FileNotFoundError" in caplog.text)
    assert watched.value == "one"
    file.write_text("back")
    until(lambda: watched.value == "back")


def test_a_file_is_read_after_two_equal_checks(file):
    changed = ChangedFile(file, parse)
    assert changed.first() == "one"
    file.write_text("half of a l")
    assert changed() is None
    file.write_text("half of a line and the rest")
    assert changed() is None
    assert changed() == "half of a line and the rest"
    assert changed() is None


def test_a_read_can_be_requested_and_close_ends_the_thread():
    readings = threading.Semaphore(0)
    refreshed = RefreshedValue(0, lambda: readings.release() or 1, "numbers", 3600, LOG)
    refreshed.start()
    refreshed.request_refresh()
    assert readings.acquire(timeout=WAIT_S)
    until(lambda: refreshed.value == 1)
    refreshed.close()
    assert not any(thread.name == "refresh numbers" for thread in threading.enumerate())


def test_many_requested_reads_keep_the_pause():
    readings = []
    refreshed = RefreshedValue(0, lambda: readings.append(0), "numbers", 3600, LOG, pause_s=3600)
    refreshed.start()
    for _ in range(100):
        refreshed.request_refresh()
    refreshed.close()
    assert readings == []


def test_close_needs_no_start():
    RefreshedValue(0, lambda: None, "nothing", 1, LOG).close()
