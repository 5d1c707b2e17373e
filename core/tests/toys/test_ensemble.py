from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tritonpy.api.engine import Engine
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import CallbackSink, InferRequest, InferResponse
from tritonpy_types.errors import Cancelled

from .doubler import Doubler, Gate, gated
from .ensemble import EnsembleScheduler
from .rescheduling import ReschedulingScheduler
from .serving import ToyPlugin, ask, config_of, numbers, request_of, serving, toy_plugins

ENSEMBLE = """
    platform: "ensemble"
    max_batch_size: 4
    input { name: "IN" data_type: TYPE_INT32 dims: 1 }
    output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
    ensemble_scheduling {
      step { model_name: "MEMBER" model_version: -1 input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "half" } }
      step { model_name: "MEMBER" model_version: -1 input_map { key: "IN" value: "half" } output_map { key: "OUT" value: "OUT" } }
    }
"""
IN_ORDER = "dynamic_batching { preserve_ordering: true }"


@contextmanager
def ensembles(
    repository: ModelRepository, gate: Gate | None = None, member: str = IN_ORDER
) -> Iterator[Engine]:
    """Serve two ensembles, each of which calls the same member twice."""
    repository.add("member", config_of("doubler", batch=4, instances=2, more=member))
    for name in ("first", "second"):
        repository.add(name, ENSEMBLE.replace("MEMBER", "member"))
    backend = Doubler if gate is None else gated(gate)
    plugin = ToyPlugin(
        {"doubler": backend}, {"dynamic": ReschedulingScheduler, "ensemble": EnsembleScheduler}
    )
    with serving(repository, toy_plugins(plugin)) as server:
        yield server.engine


def test_the_steps_run_in_sequence(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with ensembles(model_repository) as engine:
        requests = [
            ask(engine, recorder, "first", [[number]], id=str(number)) for number in range(10)
        ]
        responses = recorder.wait(*requests)
    assert [numbers(each) for each in responses] == [[[4 * number]] for number in range(10)]
    assert [each[0].id for each in responses] == [str(number) for number in range(10)]
    recorder.check(*requests)


def test_a_failing_step_fails_the_ensemble_with_its_text(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with ensembles(model_repository) as engine:
        request = ask(engine, recorder, "first", [[13]])
        with pytest.raises(Exception, match="thirteen cannot be doubled"):
            numbers(*recorder.wait(request))
    recorder.check(request)


def test_cancelling_an_ensemble_cancels_the_waiting_step(model_repository: ModelRepository) -> None:
    recorder, gate = RecordingSink(), Gate()
    with ensembles(model_repository, gate) as engine:
        running = [ask(engine, recorder, "first", [[1]]) for _ in range(2)]
        gate.wait_for(2)
        request = ask(engine, recorder, "first", [[2]])
        assert engine.gauges()["member", "1"].pending == 1
        request.cancel()
        with pytest.raises(Cancelled):
            numbers(*recorder.wait(request))
        assert engine.gauges()["member", "1"].pending == 0
        gate.open()
        recorder.wait(*running)
    recorder.check(request, *running)


def test_no_lock_is_held_while_a_member_is_called(model_repository: ModelRepository) -> None:
    """Two ensembles whose members respond to each other's requests must not wait for each other."""
    recorder = RecordingSink()
    with ensembles(model_repository) as engine:
        requests = [
            request_of(recorder, name, [[1]]) for _ in range(150) for name in ("first", "second")
        ]

        def send(share: list[InferRequest]) -> None:
            for request in share:
                engine.infer(request)

        threads = [
            threading.Thread(target=send, args=(requests[start::4],), daemon=True)
            for start in range(4)
        ]
        for thread in threads:
            thread.start()
        responses = recorder.wait(*requests)
        for thread in threads:
            thread.join()
    assert all(numbers(each) == [[4]] for each in responses)
    recorder.check(*requests)


def test_a_sink_may_call_the_model_that_responds_to_it(model_repository: ModelRepository) -> None:
    """Also with `preserve_ordering`, in which responses wait for each other."""
    recorder = RecordingSink()
    with ensembles(model_repository) as engine:
        requests = [request_of(recorder, "member", [[number]]) for number in range(6)]

        def send_next(request: InferRequest, response: InferResponse) -> None:
            recorder.sink.put(request, response)
            following = requests[requests.index(request) + 1]
            engine.infer(following)

        for request in requests[:-1]:
            request.sink = CallbackSink(send_next)
        engine.infer(requests[0])
        responses = recorder.wait(*requests)
    assert [numbers(each) for each in responses] == [[[2 * number]] for number in range(6)]
    recorder.check(*requests)
