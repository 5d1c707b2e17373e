from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tritonpy.api.engine import Engine
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink

from .continuous import MAX_OPEN, Stepper, countdown
from .serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins


@contextmanager
def counting(repository: ModelRepository, stepper: Stepper) -> Iterator[Engine]:
    repository.add("countdown", config_of("countdown"))
    with serving(repository, toy_plugins(ToyPlugin({"countdown": countdown(stepper)}))) as server:
        yield server.engine


def test_requests_join_between_steps_up_to_max_open(model_repository: ModelRepository) -> None:
    stepper, recorder = Stepper(), RecordingSink()
    with counting(model_repository, stepper) as engine:
        requests = [ask(engine, recorder, "countdown", [3])]
        stepper.wait_for([3])
        requests += [ask(engine, recorder, "countdown", [steps]) for steps in (1, 2, 5, 4, 6)]
        stepper.allow()
        stepper.wait_for([2, 1, 2, 5])  # four are in flight, two wait
        assert engine.gauges()["countdown", "1"].pending == 2
        stepper.allow()
        stepper.wait_for([1, 1, 4, 4])  # one is finished, the next one has joined
        stepper.allow(100)
        responses = recorder.wait(*requests)
    assert [numbers(each) for each in responses] == [[[steps]] for steps in (3, 1, 2, 5, 4, 6)]
    assert max(map(len, stepper.steps)) == MAX_OPEN
    recorder.check(*requests)


def test_a_finished_request_admits_a_waiting_one(model_repository: ModelRepository) -> None:
    stepper, recorder = Stepper(), RecordingSink()
    stepper.allow(1000)
    with counting(model_repository, stepper) as engine:
        requests = [ask(engine, recorder, "countdown", [number % 5 + 1]) for number in range(40)]
        recorder.wait(*requests)
        assert engine.gauges()["countdown", "1"].pending == 0
    recorder.check(*requests)


def test_a_failing_step_also_fails_the_requests_that_joined(
    model_repository: ModelRepository,
) -> None:
    stepper, recorder = Stepper(), RecordingSink()
    with counting(model_repository, stepper) as engine:
        requests = [ask(engine, recorder, "countdown", [20])]
        stepper.wait_for([20])
        requests += [ask(engine, recorder, "countdown", [steps]) for steps in (5, 13)]
        stepper.allow(100)
        first, *joined = recorder.wait(*requests)
        for responses in (first, *joined):
            with pytest.raises(Exception, match="thirteen steps are too many"):
                numbers(responses)
        later = ask(engine, recorder, "countdown", [1])
        assert numbers(*recorder.wait(later)) == [[1]]  # the instance still works and is free
    recorder.check(*requests, later)
