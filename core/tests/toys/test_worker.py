from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tritonpy.api.engine import Engine
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types.errors import InvalidArgument, Unavailable

from .doubler import Doubler
from .serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins
from .worker import InWorker

CALLS_TWICE = """
def run(inputs, call):
    if inputs["IN"][0] == 66:
        import os
        os._exit(3)
    if inputs["IN"][0] == 404:
        return call("unknown", {"IN": inputs["IN"]})
    once = call("double", {"IN": inputs["IN"]})["OUT"]
    return {"OUT": call("double", {"IN": once})["OUT"] + 1}
"""


@contextmanager
def working(repository: ModelRepository) -> Iterator[Engine]:
    repository.add("double", config_of("doubler"))
    repository.add("worker", config_of("worker"), versions={1: {"model.py": CALLS_TWICE}})
    with serving(
        repository, toy_plugins(ToyPlugin({"doubler": Doubler, "worker": InWorker}))
    ) as server:
        yield server.engine


def test_a_model_in_a_worker_process_calls_another_model(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with working(model_repository) as engine:
        requests = [ask(engine, recorder, "worker", [number]) for number in range(10)]
        responses = recorder.wait(*requests)
    assert [numbers(each) for each in responses] == [[[4 * number + 1]] for number in range(10)]
    recorder.check(*requests)


def test_the_error_of_a_called_model_reaches_the_caller(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with working(model_repository) as engine:
        failed, missing = (
            ask(engine, recorder, "worker", [13]),
            ask(engine, recorder, "worker", [404]),
        )
        with pytest.raises(Exception, match="thirteen cannot be doubled"):
            numbers(*recorder.wait(failed))
        with pytest.raises(
            InvalidArgument, match="Request for unknown model: 'unknown' is not found"
        ):
            numbers(*recorder.wait(missing))
    recorder.check(failed, missing)


def test_a_dead_worker_fails_its_own_requests_only(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with working(model_repository) as engine:
        killed = [ask(engine, recorder, "worker", [number]) for number in (66, 1, 2)]
        for responses in recorder.wait(*killed):
            with pytest.raises(Unavailable, match="the worker process of model 'worker' ended"):
                numbers(responses)
        assert numbers(*recorder.wait(ask(engine, recorder, "double", [4]))) == [[8]]
    recorder.check(*killed)
