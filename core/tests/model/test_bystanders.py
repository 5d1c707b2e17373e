from __future__ import annotations

from typing import Any

import pytest

from tritonpy.api.observer import Observer
from tritonpy.model.bystanders import show, teach
from tritonpy.testing.witness import Witness
from tritonpy.types import Batch, InferRequest, InferResponse

REQUEST = InferRequest("m", {}, Witness().sink)


class Noting(Observer):
    def __init__(self, fails: bool) -> None:
        self.fails = fails
        self.seen: list[tuple[Any, int]] = []

    def answered(self, request: InferRequest, response: InferResponse, now_ns: int) -> None:
        if self.fails:
            raise ValueError("looked away")
        self.seen.append((request, now_ns))


def test_an_observer_that_fails_hides_nothing_from_the_next(caplog: pytest.LogCaptureFixture) -> None:
    observers = [Noting(True), Noting(False)]
    show(observers, [(REQUEST, InferResponse(())), (REQUEST, InferResponse(()))], 5)
    assert observers[1].seen == [(REQUEST, 5), (REQUEST, 5)]
    assert caplog.text.count("observer Noting failed") == 2


class Policy:
    def __init__(self, fails: bool) -> None:
        self.fails = fails
        self.learned: list[tuple[int, int]] = []

    def executed(self, size: int, ns: int) -> None:
        if self.fails:
            raise ValueError("slept")
        self.learned.append((size, ns))


def test_a_policy_that_fails_to_learn_keeps_the_next_from_nothing(caplog: pytest.LogCaptureFixture) -> None:
    policies: Any = [Policy(True), Policy(False)]
    teach(policies, Batch([REQUEST], start_ns=3), 10)
    assert policies[1].learned == [(1, 7)]
    assert "batch policy Policy failed to learn" in caplog.text
