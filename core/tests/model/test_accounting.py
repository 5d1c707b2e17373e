"""A batch that leaves as it was run is counted in sums: what they come to is what one request after the other would."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.options import NoOptions
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.clock import now_ns
from tritonpy.config.server.latency_settings import LatencySettings
from tritonpy.direct import DirectScheduler
from tritonpy.errors import Internal
from tritonpy.model.accounting import Accounting
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.slot import Slot
from tritonpy.runners.timer import Timer
from tritonpy.testing.parse import model_config
from tritonpy.types import Batch, CallbackSink, InferRequest, InferResponse
from tritonpy.types.work import Work

SINK = CallbackSink(lambda request, response: None)
COUNT = 3


class Counting(Accounting):
    """Says how it counted."""

    def __init__(self, dispatcher: Dispatcher, latencies: LatencySettings) -> None:
        config = model_config('name: "m" max_batch_size: 8')
        log = logging.LoggerAdapter(logging.getLogger("tritonpy.backend"), {})
        context = ModelContext("m", 7, config, Path(), Path(), {}, {}, NoOptions(), None, log)  # type: ignore[arg-type]
        super().__init__(context, latencies, dispatcher)
        self.one_by_one = 0

    def _one_by_one(self, *arguments: object) -> object:  # type: ignore[override]
        self.one_by_one += 1
        return super()._one_by_one(*arguments)  # type: ignore[arg-type]


class Costs(BatchPolicy):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def plan(self, pending: object, now_ns: int) -> object:  # type: ignore[override]
        raise AssertionError("nobody asks")

    def executed(self, rows: int, busy_ns: int) -> None:
        self.told.append(rows)


class Hall:
    """An instance with one batch, and who counts its answers."""

    def __init__(self, timer: Timer, latencies: LatencySettings = LatencySettings()) -> None:  # noqa: B008
        self.dispatcher = Dispatcher(timer)
        self.scheduler = DirectScheduler(SchedulerContext("m", 1, None, None, None, None))  # type: ignore[arg-type]
        self.dispatcher.attach(self.scheduler)
        self.accounting = Counting(self.dispatcher, latencies)
        self.slot = Slot(InstanceContext("m_0_0", "CPU", 0, 0))
        self.batch = self.batch_of(COUNT)

    def batch_of(self, count: int) -> Batch:
        requests = [
            InferRequest("m", {}, SINK, received_ns=10 * number, queued_ns=20 * number, batch_size=2)
            for number in range(1, count + 1)
        ]
        batch = Batch(requests, instance=self.slot, start_ns=100, input_end_ns=150, infer_end_ns=250)
        for request in requests:
            request.batch = batch
        self.slot.open += count
        return batch

    def answers(self) -> list[InferResponse]:
        return [InferResponse((), "m", 7) for _ in self.batch.requests]

    def count(self, requests: list[InferRequest], responses: list[InferResponse], at: int = 300) -> tuple[int, int]:
        with self.dispatcher.lock:
            answers, last = self.accounting.answered(requests, responses, 0, at)
        assert [request for request, _ in answers] == [each for each in requests if each in self.batch.requests][
            : len(answers)
        ]
        return len(answers), last


@pytest.fixture
def timer() -> Iterator[Timer]:
    timer = Timer()
    yield timer
    timer.stop()


def test_the_sums_are_those_of_one_request_after_the_other(timer: Timer) -> None:
    whole, single = Hall(timer), Hall(timer)
    assert whole.count(whole.batch.requests, whole.answers()) == (COUNT, COUNT)
    assert single.count(list(single.batch.requests), single.answers()) == (COUNT, COUNT)
    assert (whole.accounting.one_by_one, single.accounting.one_by_one) == (0, 1)
    counted = [hall.accounting.statistics() for hall in (whole, single)]
    for statistics in counted:
        statistics.last_inference = 0
    assert counted[0] == counted[1]
    times = counted[0].inference_stats
    assert (times.success.count, times.success.ns) == (COUNT, 290 + 280 + 270)
    assert (times.queue.ns, times.compute_input.ns, times.compute_infer.ns, times.compute_output.ns) == (
        180,
        150,
        300,
        150,
    )
    assert (counted[0].inference_count, counted[0].execution_count) == (2 * COUNT, 1)
    assert [each.answered for each in whole.batch.requests] == [True] * COUNT
    assert (whole.slot.open, single.slot.open) == (0, 0)


def answered_before(hall: Hall, responses: list[InferResponse]) -> None:
    hall.count([hall.batch.requests[1]], [responses[1]])


def fails(_hall: Hall, responses: list[InferResponse]) -> None:
    responses[1].error = Internal("no")


def goes_on(_hall: Hall, responses: list[InferResponse]) -> None:
    responses[1].final = False


def nameless(_hall: Hall, responses: list[InferResponse]) -> None:
    responses[1].model_version = -1


def costs(hall: Hall, _responses: list[InferResponse]) -> None:
    hall.batch.requests[1].work = Work()


@pytest.mark.parametrize(
    ("change", "expected", "left"),
    [
        (answered_before, (COUNT - 1, COUNT - 1), 0),
        (fails, (COUNT, COUNT), 0),
        (goes_on, (COUNT, COUNT - 1), 1),
        (nameless, (COUNT, COUNT), 0),
        (costs, (COUNT, COUNT), 0),
    ],
)
def test_where_one_answer_is_another_matter_each_is_looked_at(
    timer: Timer, change: Callable[[Hall, list[InferResponse]], None], expected: tuple[int, int], left: int
) -> None:
    hall = Hall(timer)
    responses = hall.answers()
    change(hall, responses)
    before = hall.accounting.one_by_one
    with hall.dispatcher.lock:
        answers, last = hall.accounting.answered(hall.batch.requests, responses, 0, 300)
    assert (len(answers), last) == expected
    assert hall.accounting.one_by_one == before + 1
    assert hall.slot.open == left
    statistics = hall.accounting.statistics()
    assert statistics.execution_count == 1
    assert statistics.inference_stats.fail.count == (1 if change is fails else 0)
    assert all(response.model_version == 7 for response in responses)


def test_where_each_answer_is_measured_each_is_looked_at(timer: Timer) -> None:
    hall = Hall(timer, LatencySettings(summaries=True))
    assert hall.count(hall.batch.requests, hall.answers()) == (COUNT, COUNT)
    assert hall.accounting.one_by_one == 1


def test_an_execution_that_was_counted_is_not_counted_again(timer: Timer) -> None:
    hall = Hall(timer)
    hall.accounting.executed(hall.batch, 260)
    assert hall.count(hall.batch.requests, hall.answers()) == (COUNT, COUNT)
    assert hall.accounting.statistics().execution_count == 1


def test_no_answers_are_nothing(timer: Timer) -> None:
    assert Hall(timer).count([], []) == (0, 0)


def test_policies_learn_what_a_whole_batch_cost(timer: Timer) -> None:
    hall, costs = Hall(timer), Costs()
    hall.accounting.teach(costs)
    hall.count(hall.batch.requests, hall.answers())
    assert costs.told == [2 * COUNT]


class Released(DirectScheduler):
    """Notes what left."""

    def __init__(self) -> None:
        super().__init__(SchedulerContext("m", 1, None, None, None, None))  # type: ignore[arg-type]
        self.left: list[InferRequest] = []

    def released(self, request: InferRequest, reschedule: bool) -> None:
        self.left.append(request)


def test_a_scheduler_that_wants_to_know_hears_of_each_that_left(timer: Timer) -> None:
    hall, scheduler = Hall(timer), Released()
    hall.dispatcher.attach(scheduler)
    before = now_ns()
    hall.count(hall.batch.requests, hall.answers(), before)
    assert scheduler.left == hall.batch.requests
    assert (hall.slot.open, hall.accounting.one_by_one) == (0, 0)
