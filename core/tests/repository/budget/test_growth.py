from __future__ import annotations

import logging
import threading

import pytest

from tritonpy.repository.budget import growth
from tritonpy.repository.budget.growth import GrowthWatch


class Room:
    def __init__(self, *answers):
        self._answers = list(answers)
        self.done = threading.Event()

    def shrink(self):
        if not self._answers:
            self.done.set()
            return ""
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(growth, "LOOK_S", 0.001)


def looked(room):
    watch = GrowthWatch(room)
    watch.start()
    watch.start()
    assert room.done.wait(10)
    watch.stop()
    watch.start()
    assert "memory budget" not in [thread.name for thread in threading.enumerate()]


def test_a_complaint_is_made_once_until_it_is_over(caplog):
    with caplog.at_level(logging.WARNING):
        looked(Room("too much", "too much", "", "too much"))
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_an_exception_is_logged_and_the_next_look_follows(caplog):
    looked(Room(RuntimeError("oh"), ""))
    assert "not looked after" in caplog.text
