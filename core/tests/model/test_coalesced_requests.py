"""Coalesced requests have the same results as single requests."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.one_model import one_model
from core.tests.toys.serving import config_of, numbers, request_of
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.server.server import Server
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import InferRequest, OutputSpec
from tritonpy_types.clock import now_ns
from tritonpy_types.errors import Cancelled, InvalidArgument, QueueFull, TritonError


class RecordedRejections:
    """Records rejections, and checks that the model's lock is free meanwhile."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.errors: dict[str, Exception] = {}

    def __call__(self, request: InferRequest, error: Exception) -> None:
        reader = threading.Thread(target=lambda: self._server.engine.statistics("m"))
        reader.start()
        reader.join(10)
        assert not reader.is_alive()
        self.errors[request.id] = error


def coalesced(recorder: RecordingSink, count: int, **fields: Any) -> list[InferRequest]:
    return [
        request_of(recorder, "m", [[number]], id=str(number), **fields) for number in range(count)
    ]


def infer_coalesced(server: Server, requests: list[InferRequest]) -> dict[str, Exception]:
    refusals = RecordedRejections(server)
    server.engine.infer_many(requests, refusals)
    return refusals.errors


def test_each_request_is_completed_and_counted_once(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler) as server:
        requests = coalesced(recorder, 12)
        assert infer_coalesced(server, requests) == {}
        assert [numbers(each) for each in recorder.wait(*requests)] == [
            [[2 * number]] for number in range(12)
        ]
        (statistics,) = server.engine.statistics("m")
        pending = server.engine.gauges()["m", "1"].pending
    recorder.check(*requests)
    assert [response.id for each in requests for response in recorder.responses(each)] == [
        each.id for each in requests
    ]
    assert (statistics.inference_stats.success.count, statistics.inference_count, pending) == (
        12,
        12,
        0,
    )


class Full(DirectScheduler):
    """Accepts two requests."""

    def enqueue(self, request: InferRequest) -> None:
        if len(self._queue) >= 2:
            raise QueueFull("Exceeds maximum queue size").with_request_id(request.id)
        super().enqueue(request)


def test_requests_beyond_the_queue_size_are_rejected_and_the_others_run(
    model_repository: ModelRepository,
) -> None:
    recorder, gate = RecordingSink(), Gate()
    with one_model(model_repository, gated(gate), scheduler=Full) as server:
        hold = coalesced(recorder, 1)
        server.engine.infer(hold[0])
        gate.wait_for(1)
        requests = coalesced(recorder, 4)
        refused = infer_coalesced(server, requests)
        gate.open()
        recorder.wait(*hold, *requests[:2])
    assert list(refused) == ["2", "3"]
    assert [str(error) for error in refused.values()] == [
        "[request id: 2] Exceeds maximum queue size",
        "[request id: 3] Exceeds maximum queue size",
    ]
    assert all(not recorder.responses(request) for request in requests[2:])


class BulkScheduler(DirectScheduler):
    """Accepts up to three requests together, and records the numbers."""

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self.taken: list[int] = []

    def enqueue(self, request: InferRequest) -> None:
        self.taken.append(1)
        super().enqueue(request)

    def enqueue_many(self, requests: Sequence[InferRequest]) -> bool:
        if len(requests) > 3:
            return False
        self.taken.append(len(requests))
        self._queue.extend(requests)
        return True


class OverridingScheduler(BulkScheduler):
    """Overrides how a single request is accepted."""

    def enqueue(self, request: InferRequest) -> None:
        self.taken.append(-1)
        self._queue.append(request)


@pytest.mark.parametrize(("count", "batching"), [(3, ""), (4, ""), (3, "preserve_ordering: true")])
def test_a_scheduler_may_accept_all_requests_together(
    model_repository: ModelRepository, count: int, batching: str
) -> None:
    recorder = RecordingSink()
    config = config_of("toy", batch=4, more=f"dynamic_batching {{ {batching} }}")
    with one_model(model_repository, Doubler, scheduler=BulkScheduler, config=config) as server:
        model = server.engine._table.find("m", -1)
        requests = coalesced(recorder, count)
        assert infer_coalesced(server, requests) == {}
        assert [numbers(each) for each in recorder.wait(*requests)] == [
            [[2 * number]] for number in range(count)
        ]
        assert model._scheduler.taken == ([3] if count == 3 else [1] * count)
        assert (model.in_flight, model.waiting) == (0, 0)
        cancelled = coalesced(recorder, 3)
        cancelled[1].cancel()
        refused = infer_coalesced(server, cancelled)
        recorder.wait(cancelled[0], cancelled[2])
        assert model._scheduler.taken[-2:] == [1, 1]
    assert list(refused) == ["1"]
    recorder.check(*requests, cancelled[0], cancelled[2])


def test_an_overridden_enqueue_disables_the_inherited_bulk_method(
    model_repository: ModelRepository,
) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler, scheduler=OverridingScheduler) as server:
        requests = coalesced(recorder, 2)
        assert infer_coalesced(server, requests) == {}
        recorder.wait(*requests)
        assert server.engine._table.find("m", -1)._scheduler.taken == [-1, -1]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"model_version": 7}, TritonError),
        ({"outputs": {"NONE": OutputSpec("NONE")}}, InvalidArgument),
    ],
)
def test_rejected_requests_get_the_same_errors_as_single_ones(
    model_repository: ModelRepository, fields: dict[str, Any], kind: type[TritonError]
) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler) as server:
        requests = coalesced(recorder, 3, **fields)
        refused = infer_coalesced(server, requests)
        for request in requests:
            with pytest.raises(kind) as alone:
                server.engine.infer(request)
            assert str(alone.value) == str(refused[request.id])
            assert type(alone.value) is type(refused[request.id])


def test_an_unknown_model_is_an_error_for_each_request(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler) as server:
        requests = [request_of(recorder, "missing", [[1]], id=str(number)) for number in range(2)]
        refused = infer_coalesced(server, requests)
    text = "Request for unknown model: 'missing' is not found"
    assert {name: str(error) for name, error in refused.items()} == {"0": text, "1": text}


def test_only_the_cancelled_request_is_rejected(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler) as server:
        requests = coalesced(recorder, 3)
        requests[1].cancel()
        refused = infer_coalesced(server, requests)
        recorder.wait(requests[0], requests[2])
    assert {name: type(error) for name, error in refused.items()} == {"1": Cancelled}


def test_deadlines_cancel_those_that_have_them(model_repository: ModelRepository) -> None:
    recorder, gate = RecordingSink(), Gate()
    with one_model(model_repository, gated(gate), scheduler=DirectScheduler) as server:
        hold = coalesced(recorder, 1)
        server.engine.infer(hold[0])
        gate.wait_for(1)
        requests = coalesced(recorder, 2)
        requests[1].deadline_ns = now_ns() + 1_000_000
        assert infer_coalesced(server, requests) == {}
        ((late,),) = recorder.wait(requests[1])
        gate.open()
        recorder.wait(*hold, requests[0])
    assert type(late.error) is Cancelled
    assert numbers(recorder.responses(requests[0])) == [[0]]


def test_requests_during_a_reload_are_all_completed(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with one_model(
        model_repository, Doubler, control={"mode": "explicit", "load": ["*"]}
    ) as server:
        ended = threading.Event()

        def reload() -> None:
            for number in range(8):
                (model_repository.path / "m/1/new").write_text(str(number))
                server.engine.load_model("m")
            ended.set()

        reloading = threading.Thread(target=reload)
        reloading.start()
        sent: list[InferRequest] = []
        while not ended.is_set():
            requests = coalesced(recorder, 5)
            assert infer_coalesced(server, requests) == {}
            recorder.wait(*requests)
            sent += requests
        reloading.join()
    recorder.check(*sent)
    assert all(numbers(recorder.responses(request)) == [[2 * int(request.id)]] for request in sent)
