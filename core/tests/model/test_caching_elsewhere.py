from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from core.tests.toys.caches import (
    Broken,
    CachePlugin,
    Distant,
    Kept,
    Numbered,
    answered,
    cached,
    counts,
    wait_until,
)
from core.tests.toys.doubler import Doubler
from core.tests.toys.rescheduling import TurnScheduler
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins
from tritonpy.clock import now_ns
from tritonpy.errors import Cancelled, Unavailable
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness
from tritonpy.types import Batch, InferRequest, InferResponse, Tensor


def test_a_distant_cache_is_asked_from_other_threads(model_repository: ModelRepository) -> None:
    with cached(model_repository, Distant) as server:
        answered(server, [[1]])
        Distant.made.wait_for_insertions(1)
        assert numbers(answered(server, [[1]])[1]) == [[2]]
        assert threading.current_thread().name not in Distant.made.looked_up
        assert counts(server) == (2, 1, 1, 1)


def test_infer_does_not_wait_for_a_distant_cache(model_repository: ModelRepository) -> None:
    witness = Witness()
    with cached(model_repository, Distant) as server:
        Distant.made.gate.clear()
        request = ask(server.engine, witness, "m", [[1]])
        assert witness.answers(request) == []
        Distant.made.gate.set()
        assert numbers(witness.wait(request)[0]) == [[2]]


class Late(Distant):
    deadline_ms = 50


def test_after_the_deadline_the_request_is_computed(model_repository: ModelRepository) -> None:
    with cached(model_repository, Late) as server:
        Late.made.gate.clear()
        assert numbers(answered(server, [[1]])[1]) == [[2]]
        assert counts(server) == (1, 0, 1, 1)
        Late.made.gate.set()  # and what comes now is nobody's any more
    assert Numbered.computed == 1


def test_a_request_cancelled_during_its_look_up_is_not_computed(model_repository: ModelRepository) -> None:
    witness = Witness()
    with cached(model_repository, Distant) as server:
        Distant.made.gate.clear()
        request = ask(server.engine, witness, "m", [[1]])
        request.cancel()
        Distant.made.gate.set()
        ((response,),) = witness.wait(request)
        assert isinstance(response.error, Cancelled)
        assert Numbered.computed == 0
        witness.check(request)


def test_a_deadline_of_the_request_holds_during_a_look_up(model_repository: ModelRepository) -> None:
    witness = Witness()
    with cached(model_repository, Distant) as server:
        Distant.made.gate.clear()
        request = ask(server.engine, witness, "m", [[1]], deadline_ns=now_ns() + 1)
        wait_until(lambda: request.cancelled)
        Distant.made.gate.set()
        ((response,),) = witness.wait(request)
        assert isinstance(response.error, Cancelled)


def test_a_reload_loses_no_request_that_is_looked_up(model_repository: ModelRepository) -> None:
    witness = Witness()
    with cached(model_repository, Distant, control={"mode": "explicit", "load": ["m"]}) as server:
        distant = Distant.made
        distant.gate.clear()
        requests = [ask(server.engine, witness, "m", [[number]]) for number in range(8)]
        server.engine.load_model("m")
        distant.gate.set()
        assert [numbers(each) for each in witness.wait(*requests)] == [[[2 * number]] for number in range(8)]
        witness.check(*requests)


def test_an_unloaded_model_waits_for_its_look_ups(model_repository: ModelRepository) -> None:
    witness = Witness()
    with cached(model_repository, Distant, control={"mode": "explicit", "load": ["m"]}) as server:
        Distant.made.gate.clear()
        request = ask(server.engine, witness, "m", [[1]])
        server.engine.unload_model("m")
        Distant.made.gate.set()
        assert numbers(witness.wait(request)[0]) == [[2]]


def test_a_scheduler_that_refuses_after_a_look_up_is_the_answer(model_repository: ModelRepository) -> None:
    class Full(TurnScheduler):
        def enqueue(self, request: InferRequest) -> None:
            raise Unavailable("Exceeds maximum queue size")

    model_repository.add("m", config_of("toy", batch=4, more="dynamic_batching {} response_cache { enable: true }"))
    toys = toy_plugins(ToyPlugin({"toy": Doubler}, {"dynamic": Full}), CachePlugin(Distant))
    with serving(model_repository, toys, cache={"toy": {}}) as server:
        _, (response,) = answered(server, [[1]])
        assert str(response.error) == "Exceeds maximum queue size"
        assert server.engine.statistics("m")[0].inference_stats.fail.count == 1


def test_a_scheduler_that_breaks_after_a_look_up_is_an_incident(model_repository: ModelRepository) -> None:
    class Bad(TurnScheduler):
        def enqueue(self, request: InferRequest) -> None:
            raise KeyError("oops")

    model_repository.add("m", config_of("toy", batch=4, more="dynamic_batching {} response_cache { enable: true }"))
    toys = toy_plugins(ToyPlugin({"toy": Doubler}, {"dynamic": Bad}), CachePlugin(Kept))
    with serving(model_repository, toys, cache={"toy": {}}) as server:
        _, (response,) = answered(server, [[1]])
        assert "incident" in str(response.error)


def test_a_broken_cache_fails_no_inference(model_repository: ModelRepository, caplog: pytest.LogCaptureFixture) -> None:
    with cached(model_repository, Broken) as server:
        for value in range(20, 40):
            assert numbers(answered(server, [[value]])[1]) == [[2 * value]]
        assert Broken.made.calls <= 4  # then it is left alone
        assert counts(server)[:3] == (20, 0, 20)
    assert caplog.text.count("nobody is there") == 1


def test_requests_that_are_looked_up_when_the_time_to_drain_is_over_are_not_run(
    model_repository: ModelRepository,
) -> None:
    witness = Witness()
    with cached(model_repository, Distant) as server:
        Distant.made.gate.clear()
        request = ask(server.engine, witness, "m", [[1]])
        ((_, _, record),) = server.engine._table.records()
        record.model.give_up()
        Distant.made.gate.set()
        ((response,),) = witness.wait(request)
        assert isinstance(response.error, Unavailable)
        assert Numbered.computed == 0


class OnDevice(Doubler):
    """Answers with an array that says to be elsewhere."""

    def execute(self, batch: Batch) -> None:
        for request in batch.requests:
            data = Elsewhere(request.inputs["IN"].numpy() * 2)
            request.respond(InferResponse([Tensor("OUT", "INT32", (1, 1), data, (2, 0))]))


class Elsewhere:
    """DLPack of host memory, as good as any that numpy does not know."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **_options: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_an_answer_on_a_device_is_sent_and_not_kept(model_repository: ModelRepository) -> None:
    with cached(model_repository, Kept, OnDevice) as server:
        for _ in range(2):
            assert numbers(answered(server, [[4]])[1]) == [[8]]
        assert Kept.made.entries == {}
        assert counts(server) == (2, 0, 2, 2)


def test_a_request_that_meets_a_closing_model_is_looked_up_again_as_if_it_were_new(
    model_repository: ModelRepository,
) -> None:
    witness = Witness()
    with cached(
        model_repository,
        Kept,
        control={"mode": "explicit", "load": ["m"]},
        latencies={"summaries": True},
    ) as server:
        plain = config_of("toy", batch=64, dims=-1, more="dynamic_batching {}")
        model_repository.add("m", plain)  # without a cache, from the next load on
        stop = threading.Event()
        asked: list[InferRequest] = []

        def work() -> None:
            while not stop.is_set():
                asked.append(ask(server.engine, witness, "m", [[len(asked) % 7]]))

        worker = threading.Thread(target=work)
        worker.start()
        try:
            wait_until(lambda: len(asked) > 20)
            server.engine.load_model("m")
            wait_until(lambda: len(asked) > 2000)
        finally:
            stop.set()
            worker.join()
        assert [numbers(each) for each in witness.wait(*asked)] == [[[2 * (place % 7)]] for place in range(len(asked))]
