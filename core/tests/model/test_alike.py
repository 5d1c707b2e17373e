"""Many alike requests at once meet the same model as each of them would alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.one_model import one_model
from core.tests.toys.serving import config_of, numbers, request_of
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.clock import now_ns
from tritonpy.direct import DirectScheduler
from tritonpy.errors import Cancelled, InvalidArgument, QueueFull, TritonError
from tritonpy.server import Server
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest, OutputSpec


class Refusals:
    """What is refused, and that nobody holds the model's lock while it hears so."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.errors: dict[str, Exception] = {}

    def __call__(self, request: InferRequest, error: Exception) -> None:
        asker = threading.Thread(target=lambda: self._server.engine.statistics("m"))
        asker.start()
        asker.join(10)
        assert not asker.is_alive()
        self.errors[request.id] = error


def alike(witness: Witness, count: int, **fields: Any) -> list[InferRequest]:
    return [request_of(witness, "m", [[number]], id=str(number), **fields) for number in range(count)]


def hand_over(server: Server, requests: list[InferRequest]) -> dict[str, Exception]:
    refusals = Refusals(server)
    server.engine.infer_alike(requests, refusals)
    return refusals.errors


def test_each_is_answered_and_counted_once(model_repository: ModelRepository) -> None:
    witness = Witness()
    with one_model(model_repository, Doubler) as server:
        requests = alike(witness, 12)
        assert hand_over(server, requests) == {}
        assert [numbers(each) for each in witness.wait(*requests)] == [[[2 * number]] for number in range(12)]
        (statistics,) = server.engine.statistics("m")
        pending = server.engine.gauges()["m", "1"].pending
    witness.check(*requests)
    assert [response.id for each in requests for response in witness.answers(each)] == [each.id for each in requests]
    assert (statistics.inference_stats.success.count, statistics.inference_count, pending) == (12, 12, 0)


class Full(DirectScheduler):
    """Has room for two."""

    def enqueue(self, request: InferRequest) -> None:
        if len(self._queue) >= 2:
            raise QueueFull("Exceeds maximum queue size").with_request_id(request.id)
        super().enqueue(request)


def test_those_for_which_there_is_no_room_are_refused_and_the_others_run(model_repository: ModelRepository) -> None:
    witness, gate = Witness(), Gate()
    with one_model(model_repository, gated(gate), scheduler=Full) as server:
        hold = alike(witness, 1)
        server.engine.infer(hold[0])
        gate.wait_for(1)
        requests = alike(witness, 4)
        refused = hand_over(server, requests)
        gate.open()
        witness.wait(*hold, *requests[:2])
    assert list(refused) == ["2", "3"]
    assert [str(error) for error in refused.values()] == [
        "[request id: 2] Exceeds maximum queue size",
        "[request id: 3] Exceeds maximum queue size",
    ]
    assert all(not witness.answers(request) for request in requests[2:])


class AtOnce(DirectScheduler):
    """Takes up to three at once, and notes how many."""

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self.taken: list[int] = []

    def enqueue(self, request: InferRequest) -> None:
        self.taken.append(1)
        super().enqueue(request)

    def enqueue_alike(self, requests: Sequence[InferRequest]) -> bool:
        if len(requests) > 3:
            return False
        self.taken.append(len(requests))
        self._queue.extend(requests)
        return True


class OneByOne(AtOnce):
    """Has another idea of how a request is taken."""

    def enqueue(self, request: InferRequest) -> None:
        self.taken.append(-1)
        self._queue.append(request)


@pytest.mark.parametrize(("count", "batching"), [(3, ""), (4, ""), (3, "preserve_ordering: true")])
def test_a_scheduler_may_take_them_all_at_once(model_repository: ModelRepository, count: int, batching: str) -> None:
    witness = Witness()
    config = config_of("toy", batch=4, more=f"dynamic_batching {{ {batching} }}")
    with one_model(model_repository, Doubler, scheduler=AtOnce, config=config) as server:
        model = server.engine._table.find("m", -1)
        requests = alike(witness, count)
        assert hand_over(server, requests) == {}
        assert [numbers(each) for each in witness.wait(*requests)] == [[[2 * number]] for number in range(count)]
        assert model._scheduler.taken == ([3] if count == 3 else [1] * count)
        assert (model.open, model.waiting) == (0, 0)
        cancelled = alike(witness, 3)
        cancelled[1].cancel()
        refused = hand_over(server, cancelled)
        witness.wait(cancelled[0], cancelled[2])
        assert model._scheduler.taken[-2:] == [1, 1]
    assert list(refused) == ["1"]
    witness.check(*requests, cancelled[0], cancelled[2])


def test_what_a_base_class_takes_at_once_is_not_what_another_way_to_take_one_would(
    model_repository: ModelRepository,
) -> None:
    witness = Witness()
    with one_model(model_repository, Doubler, scheduler=OneByOne) as server:
        requests = alike(witness, 2)
        assert hand_over(server, requests) == {}
        witness.wait(*requests)
        assert server.engine._table.find("m", -1)._scheduler.taken == [-1, -1]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [({"model_version": 7}, TritonError), ({"outputs": {"NONE": OutputSpec("NONE")}}, InvalidArgument)],
)
def test_what_no_model_takes_is_refused_in_the_words_for_each(
    model_repository: ModelRepository, fields: dict[str, Any], kind: type[TritonError]
) -> None:
    witness = Witness()
    with one_model(model_repository, Doubler) as server:
        requests = alike(witness, 3, **fields)
        refused = hand_over(server, requests)
        for request in requests:
            with pytest.raises(kind) as alone:
                server.engine.infer(request)
            assert str(alone.value) == str(refused[request.id])
            assert type(alone.value) is type(refused[request.id])


def test_a_model_that_nobody_has_is_said_to_each(model_repository: ModelRepository) -> None:
    witness = Witness()
    with one_model(model_repository, Doubler) as server:
        requests = [request_of(witness, "nobody", [[1]], id=str(number)) for number in range(2)]
        refused = hand_over(server, requests)
    text = "Request for unknown model: 'nobody' is not found"
    assert {name: str(error) for name, error in refused.items()} == {"0": text, "1": text}


def test_one_that_was_cancelled_before_is_refused_alone(model_repository: ModelRepository) -> None:
    witness = Witness()
    with one_model(model_repository, Doubler) as server:
        requests = alike(witness, 3)
        requests[1].cancel()
        refused = hand_over(server, requests)
        witness.wait(requests[0], requests[2])
    assert {name: type(error) for name, error in refused.items()} == {"1": Cancelled}


def test_deadlines_cancel_those_that_have_them(model_repository: ModelRepository) -> None:
    witness, gate = Witness(), Gate()
    with one_model(model_repository, gated(gate), scheduler=DirectScheduler) as server:
        hold = alike(witness, 1)
        server.engine.infer(hold[0])
        gate.wait_for(1)
        requests = alike(witness, 2)
        requests[1].deadline_ns = now_ns() + 1_000_000
        assert hand_over(server, requests) == {}
        ((late,),) = witness.wait(requests[1])
        gate.open()
        witness.wait(*hold, requests[0])
    assert type(late.error) is Cancelled
    assert numbers(witness.answers(requests[0])) == [[0]]


def test_requests_that_come_while_the_model_is_reloaded_are_all_answered(model_repository: ModelRepository) -> None:
    witness = Witness()
    with one_model(model_repository, Doubler, control={"mode": "explicit", "load": ["*"]}) as server:
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
            requests = alike(witness, 5)
            assert hand_over(server, requests) == {}
            witness.wait(*requests)
            sent += requests
        reloading.join()
    witness.check(*sent)
    assert all(numbers(witness.answers(request)) == [[2 * int(request.id)]] for request in sent)
