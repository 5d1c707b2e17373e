from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tritonpy.api.engine import Engine
from tritonpy.errors import Cancelled
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness
from tritonpy.types import CallbackSink, InferRequest, InferResponse

from .doubler import Doubler, Gate, gated
from .ensemble import EnsembleScheduler
from .rescheduling import TurnScheduler
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
def ensembles(repository: ModelRepository, gate: Gate | None = None, member: str = IN_ORDER) -> Iterator[Engine]:
    """Serve two ensembles that each call the same member twice."""
    repository.add("member", config_of("doubler", batch=4, instances=2, more=member))
    for name in ("first", "second"):
        repository.add(name, ENSEMBLE.replace("MEMBER", "member"))
    backend = Doubler if gate is None else gated(gate)
    plugin = ToyPlugin({"doubler": backend}, {"dynamic": TurnScheduler, "ensemble": EnsembleScheduler})
    with serving(repository, toy_plugins(plugin)) as server:
        yield server.engine


def test_the_steps_run_one_after_the_other(model_repository: ModelRepository) -> None:
    witness = Witness()
    with ensembles(model_repository) as engine:
        requests = [ask(engine, witness, "first", [[number]], id=str(number)) for number in range(10)]
        answers = witness.wait(*requests)
    assert [numbers(each) for each in answers] == [[[4 * number]] for number in range(10)]
    assert [each[0].id for each in answers] == [str(number) for number in range(10)]
    witness.check(*requests)


def test_a_failing_step_fails_the_ensemble_with_its_text(model_repository: ModelRepository) -> None:
    witness = Witness()
    with ensembles(model_repository) as engine:
        request = ask(engine, witness, "first", [[13]])
        with pytest.raises(Exception, match="thirteen cannot be doubled"):
            numbers(*witness.wait(request))
    witness.check(request)


def test_cancelling_an_ensemble_cancels_the_step_that_waits(model_repository: ModelRepository) -> None:
    witness, gate = Witness(), Gate()
    with ensembles(model_repository, gate) as engine:
        running = [ask(engine, witness, "first", [[1]]) for _ in range(2)]
        gate.wait_for(2)
        request = ask(engine, witness, "first", [[2]])
        assert engine.gauges()["member", "1"].pending == 1
        request.cancel()
        with pytest.raises(Cancelled):
            numbers(*witness.wait(request))
        assert engine.gauges()["member", "1"].pending == 0
        gate.open()
        witness.wait(*running)
    witness.check(request, *running)


def test_no_lock_is_held_while_a_member_is_called(model_repository: ModelRepository) -> None:
    """Two ensembles whose members answer each other's requests must not wait for each other."""
    witness = Witness()
    with ensembles(model_repository) as engine:
        requests = [request_of(witness, name, [[1]]) for _ in range(150) for name in ("first", "second")]

        def send(share: list[InferRequest]) -> None:
            for request in share:
                engine.infer(request)

        threads = [threading.Thread(target=send, args=(requests[start::4],), daemon=True) for start in range(4)]
        for thread in threads:
            thread.start()
        answers = witness.wait(*requests)
        for thread in threads:
            thread.join()
    assert all(numbers(each) == [[4]] for each in answers)
    witness.check(*requests)


def test_a_sink_may_call_the_model_that_answers_it(model_repository: ModelRepository) -> None:
    """With `preserve_ordering`, where answers wait for each other, too."""
    witness = Witness()
    with ensembles(model_repository) as engine:
        requests = [request_of(witness, "member", [[number]]) for number in range(6)]

        def ask_next(request: InferRequest, response: InferResponse) -> None:
            witness.sink.put(request, response)
            following = requests[requests.index(request) + 1]
            engine.infer(following)

        for request in requests[:-1]:
            request.sink = CallbackSink(ask_next)
        engine.infer(requests[0])
        answers = witness.wait(*requests)
    assert [numbers(each) for each in answers] == [[[2 * number]] for number in range(6)]
    witness.check(*requests)
