from __future__ import annotations

from typing import Any

import pytest

from tritonpy.api.observer import Observer
from tritonpy.model.notifications import notify_observers, notify_policies
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch, InferRequest, InferResponse

REQUEST = InferRequest("m", {}, RecordingSink().sink)


class RecordingObserver(Observer):
    def __init__(self, fails: bool) -> None:
        self.fails = fails
        self.seen: list[tuple[Any, int]] = []

    def responded(self, request: InferRequest, response: InferResponse, now_ns: int) -> None:
        if self.fails:
            raise ValueError("looked away")
        self.seen.append((request, now_ns))


def test_an_observer_that_fails_hides_nothing_from_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    observers = [RecordingObserver(True), RecordingObserver(False)]
    notify_observers(observers, [(REQUEST, InferResponse(())), (REQUEST, InferResponse(()))], 5)
    assert observers[1].seen == [(REQUEST, 5), (REQUEST, 5)]
    assert caplog.text.count("observer RecordingObserver failed") == 2


class Policy:
    def __init__(self, fails: bool) -> None:
        self.fails = fails
        self.learned: list[tuple[int, int]] = []

    def executed(self, size: int, ns: int) -> None:
        if self.fails:
            raise ValueError("slept")
        self.learned.append((size, ns))


def test_a_policy_that_fails_to_learn_keeps_the_next_from_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policies: Any = [Policy(True), Policy(False)]
    notify_policies(policies, Batch([REQUEST], start_ns=3), 10)
    assert policies[1].learned == [(1, 7)]
    assert "batch policy Policy failed to learn" in caplog.text
