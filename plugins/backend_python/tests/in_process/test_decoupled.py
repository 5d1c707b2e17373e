"""A decoupled model.py sends equal responses in a worker and in the server's process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tritonpy import InferRequest
from tritonpy_testing import RecordingSink, RunningServer

from ..serving import wait_for
from .modes import DECOUPLED, MODES, PLAN, both, planned, send, values_of

METHODS = """
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

def initialize(self, args):
    self.refused = []
    self.kept = []

def execute(self, requests):
    for request in requests:
        name, *arguments = self.plan(request)
        getattr(self, "do_" + name)(request, request.get_response_sender(), *arguments)

def count(self, sender, numbers):
    for number in numbers:
        sender.send(self.answer(number))
    sender.send(flags=self.FINAL)

def do_count(self, request, sender, numbers):
    self.count(sender, numbers)

def do_thread(self, request, sender, numbers):
    threading.Thread(target=self.count, args=(sender, numbers)).start()

def do_last(self, request, sender):
    sender.send(self.answer("last"), self.FINAL)

def do_error(self, request, sender):
    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("bad", pb_utils.TritonError.UNAVAILABLE)))
    sender.send(flags=self.FINAL)

def do_raise(self, request, sender):
    sender.send(self.answer(1))
    raise ValueError("half way")

def do_forget(self, request, sender):
    pass

def do_forget_half_way(self, request, sender):
    sender.send(self.answer(1))

def do_forget_later(self, request, sender):
    self.kept.append(sender)
    threading.Thread(target=self.kept.clear).start()

def do_too_late(self, request, sender):
    sender.send(flags=self.FINAL)
    for wrong in (lambda: sender.send(self.answer(1)), lambda: sender.send(flags=2), lambda: sender.send()):
        try:
            wrong()
        except pb_utils.TritonModelException as error:
            self.refused.append(str(error))

def do_refused(self, request, sender):
    self.count(sender, self.refused)
    self.refused = []
"""
COROUTINE = """
async def execute(self, requests):
    for request in requests:
        name, *arguments = self.plan(request)
        sender = request.get_response_sender()
        for number in arguments:
            await asyncio.sleep(0)
            sender.send(self.answer(number))
        if name == "raise":
            raise ValueError("in the background")
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
PLANS: list[tuple[Any, ...]] = [
    ("count", [0, 1, 2]),
    ("count", []),
    ("thread", [5, 6]),
    ("last",),
    ("error",),
    ("raise",),
    ("forget",),
    ("forget_half_way",),
    ("forget_later",),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with both(tmp_path_factory.mktemp("models"), METHODS, PLAN + DECOUPLED) as running:
        yield running


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan[0])
def test_responses_are_equal_in_both_modes(server: RunningServer, plan: tuple[Any, ...]) -> None:
    one, other = (values_of(send(server, mode, planned(*plan)), mode) for mode in MODES)
    assert one == other
    assert one


def test_no_response_can_follow_the_final_one(server: RunningServer) -> None:
    for mode in MODES:
        assert values_of(send(server, mode, planned("too_late")), mode) == ["end"]
    one, other = (values_of(send(server, mode, planned("refused")), mode) for mode in MODES)
    assert one == other
    assert len(one) == 4


@pytest.fixture(scope="module")
def background(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with both(tmp_path_factory.mktemp("models"), COROUTINE, PLAN + DECOUPLED) as running:
        yield running


@pytest.mark.parametrize("plan", [("say", 1, 2), ("say",), ("raise", 1)], ids=str)
def test_coroutines_respond_in_the_background(
    background: RunningServer, plan: tuple[Any, ...]
) -> None:
    one, other = (values_of(send(background, mode, planned(*plan)), mode) for mode in MODES)
    assert one == other
    assert one


def test_a_model_can_detect_a_cancelled_request(tmp_path: Any) -> None:
    methods = """
def execute(self, requests):
    (request,) = requests
    sender = request.get_response_sender()
    sender.send(self.answer("begun"))
    while not sender.is_cancelled():
        pass
    sender.send(self.answer(request.is_cancelled()), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
    with both(tmp_path, methods, PLAN + DECOUPLED) as running:
        for mode in MODES:
            recorder = RecordingSink()
            request = InferRequest(mode, planned(""), recorder.sink, accepts_decoupled=True)
            running.engine.infer(request)
            wait_for(lambda request=request, recorder=recorder: recorder.responses(request))
            request.cancel()
            (answers,) = recorder.wait(request)
            assert values_of(answers, mode) == ["begun", True]


def test_rescheduling_is_an_error_if_the_scheduler_does_not_support_it(tmp_path: Any) -> None:
    methods = """
def execute(self, requests):
    (request,) = requests
    request.get_response_sender().send(self.answer("begun"))
    request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
"""
    with both(tmp_path, methods, PLAN + DECOUPLED) as running:
        one, other = (values_of(send(running, mode, planned("")), mode) for mode in MODES)
        assert one == other
        assert one[0] == "begun"
        assert "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE" in one[1][1]
