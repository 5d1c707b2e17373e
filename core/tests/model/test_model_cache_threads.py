from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from core.tests.toys.caches import (
    Broken,
    CachePlugin,
    CountingDoubler,
    MemoryCache,
    SlowCache,
    cached,
    counts,
    infer,
    wait_until,
)
from core.tests.toys.doubler import Doubler
from core.tests.toys.rescheduling import ReschedulingScheduler
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch, InferRequest, InferResponse, Tensor
from tritonpy_types.clock import now_ns
from tritonpy_types.errors import Cancelled, Unavailable


def test_a_blocking_cache_is_called_on_other_threads(model_repository: ModelRepository) -> None:
    with cached(model_repository, SlowCache) as server:
        infer(server, [[1]])
        SlowCache.made.wait_for_insertions(1)
        assert numbers(infer(server, [[1]])[1]) == [[2]]
        assert threading.current_thread().name not in SlowCache.made.looked_up
        assert counts(server) == (2, 1, 1, 1)


def test_infer_does_not_wait_for_a_blocking_cache(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with cached(model_repository, SlowCache) as server:
        SlowCache.made.gate.clear()
        request = ask(server.engine, recorder, "m", [[1]])
        assert recorder.responses(request) == []
        SlowCache.made.gate.set()
        assert numbers(recorder.wait(request)[0]) == [[2]]


class Late(SlowCache):
    deadline_ms = 50


def test_after_the_deadline_the_request_is_computed(model_repository: ModelRepository) -> None:
    with cached(model_repository, Late) as server:
        Late.made.gate.clear()
        assert numbers(infer(server, [[1]])[1]) == [[2]]
        assert counts(server) == (1, 0, 1, 1)
        Late.made.gate.set()  # the result comes too late
    assert CountingDoubler.computed == 1


def test_a_request_cancelled_during_its_lookup_is_not_computed(
    model_repository: ModelRepository,
) -> None:
    recorder = RecordingSink()
    with cached(model_repository, SlowCache) as server:
        SlowCache.made.gate.clear()
        request = ask(server.engine, recorder, "m", [[1]])
        request.cancel()
        SlowCache.made.gate.set()
        ((response,),) = recorder.wait(request)
        assert isinstance(response.error, Cancelled)
        assert CountingDoubler.computed == 0
        recorder.check(request)


def test_a_deadline_of_the_request_applies_during_a_lookup(
    model_repository: ModelRepository,
) -> None:
    recorder = RecordingSink()
    with cached(model_repository, SlowCache) as server:
        SlowCache.made.gate.clear()
        request = ask(server.engine, recorder, "m", [[1]], deadline_ns=now_ns() + 1)
        wait_until(lambda: request.cancelled)
        SlowCache.made.gate.set()
        ((response,),) = recorder.wait(request)
        assert isinstance(response.error, Cancelled)


def test_a_reload_loses_no_request_during_its_lookup(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with cached(model_repository, SlowCache, control={"mode": "explicit", "load": ["m"]}) as server:
        distant = SlowCache.made
        distant.gate.clear()
        requests = [ask(server.engine, recorder, "m", [[number]]) for number in range(8)]
        server.engine.load_model("m")
        distant.gate.set()
        assert [numbers(each) for each in recorder.wait(*requests)] == [
            [[2 * number]] for number in range(8)
        ]
        recorder.check(*requests)


def test_an_unloaded_model_waits_for_its_lookups(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with cached(model_repository, SlowCache, control={"mode": "explicit", "load": ["m"]}) as server:
        SlowCache.made.gate.clear()
        request = ask(server.engine, recorder, "m", [[1]])
        server.engine.unload_model("m")
        SlowCache.made.gate.set()
        assert numbers(recorder.wait(request)[0]) == [[2]]


def test_a_rejection_by_the_scheduler_after_a_lookup_is_the_response(
    model_repository: ModelRepository,
) -> None:
    class Full(ReschedulingScheduler):
        def enqueue(self, request: InferRequest) -> None:
            raise Unavailable("Exceeds maximum queue size")

    model_repository.add(
        "m", config_of("toy", batch=4, more="dynamic_batching {} response_cache { enable: true }")
    )
    toys = toy_plugins(ToyPlugin({"toy": Doubler}, {"dynamic": Full}), CachePlugin(SlowCache))
    with serving(model_repository, toys, cache={"toy": {}}) as server:
        _, (response,) = infer(server, [[1]])
        assert str(response.error) == "Exceeds maximum queue size"
        assert server.engine.statistics("m")[0].inference_stats.fail.count == 1


def test_a_scheduler_failure_after_a_lookup_has_an_error_id(
    model_repository: ModelRepository,
) -> None:
    class Bad(ReschedulingScheduler):
        def enqueue(self, request: InferRequest) -> None:
            raise KeyError("oops")

    model_repository.add(
        "m", config_of("toy", batch=4, more="dynamic_batching {} response_cache { enable: true }")
    )
    toys = toy_plugins(ToyPlugin({"toy": Doubler}, {"dynamic": Bad}), CachePlugin(MemoryCache))
    with serving(model_repository, toys, cache={"toy": {}}) as server:
        _, (response,) = infer(server, [[1]])
        assert "error id" in str(response.error)


def test_a_broken_cache_fails_no_inference(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    with cached(model_repository, Broken) as server:
        for value in range(20, 40):
            assert numbers(infer(server, [[value]])[1]) == [[2 * value]]
        assert Broken.made.calls <= 4  # then the breaker opens
        assert counts(server)[:3] == (20, 0, 20)
    assert caplog.text.count("the cache is down") == 1


def test_requests_in_a_lookup_at_the_drain_timeout_are_not_run(
    model_repository: ModelRepository,
) -> None:
    recorder = RecordingSink()
    with cached(model_repository, SlowCache) as server:
        SlowCache.made.gate.clear()
        request = ask(server.engine, recorder, "m", [[1]])
        ((_, _, record),) = server.engine._table.records()
        record.model.fail_waiting()
        SlowCache.made.gate.set()
        ((response,),) = recorder.wait(request)
        assert isinstance(response.error, Unavailable)
        assert CountingDoubler.computed == 0


class OnDevice(Doubler):
    """Responds with an array on another device."""

    def execute(self, batch: Batch) -> None:
        for request in batch.requests:
            data = DeviceArray(request.inputs["IN"].numpy() * 2)
            request.respond(InferResponse([Tensor("OUT", "INT32", (1, 1), data, (2, 0))]))


class DeviceArray:
    """An array that NumPy does not recognize; it exports host memory through DLPack."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **_options: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_a_response_on_a_device_is_sent_and_not_cached(model_repository: ModelRepository) -> None:
    with cached(model_repository, MemoryCache, OnDevice) as server:
        for _ in range(2):
            assert numbers(infer(server, [[4]])[1]) == [[8]]
        assert MemoryCache.made.entries == {}
        assert counts(server) == (2, 0, 2, 2)


def test_requests_during_a_reload_are_looked_up_again(
    model_repository: ModelRepository,
) -> None:
    recorder = RecordingSink()
    with cached(
        model_repository,
        MemoryCache,
        control={"mode": "explicit", "load": ["m"]},
        latencies={"summaries": True},
    ) as server:
        plain = config_of("toy", batch=64, dims=-1, more="dynamic_batching {}")
        model_repository.add("m", plain)  # without a cache from the next load on
        stop = threading.Event()
        sent: list[InferRequest] = []

        def work() -> None:
            while not stop.is_set():
                sent.append(ask(server.engine, recorder, "m", [[len(sent) % 7]]))

        worker = threading.Thread(target=work)
        worker.start()
        try:
            wait_until(lambda: len(sent) > 20)
            server.engine.load_model("m")
            wait_until(lambda: len(sent) > 2000)
        finally:
            stop.set()
            worker.join()
        assert [numbers(each) for each in recorder.wait(*sent)] == [
            [[2 * (index % 7)]] for index in range(len(sent))
        ]
