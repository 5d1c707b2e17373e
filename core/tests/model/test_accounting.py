"""Counting a whole batch at once must give the same numbers as counting its requests one by one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.model.accounting import Accounting
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.slot import Slot
from tritonpy.runners.timer import Timer
from tritonpy_config.options import NoOptions
from tritonpy_config.server.sections import LatencySettings
from tritonpy_testing.parse import model_config
from tritonpy_types import Batch, CallbackSink, InferRequest, InferResponse
from tritonpy_types.clock import now_ns
from tritonpy_types.errors import Internal
from tritonpy_types.request import ComputeTimes

SINK = CallbackSink(lambda request, response: None)
COUNT = 3


class CountingScheduler(DirectScheduler):
    """Counts the queries for an idle instance: one per release of its model's requests."""

    releases = 0

    def ready(self, instance: int, now_ns: int) -> bool:
        self.releases += 1
        return False


class Costs(BatchPolicy):
    """Records the sizes of the batches."""

    def __init__(self) -> None:
        self.batch_rows: list[int] = []

    def plan(self, pending: object, now_ns: int) -> object:  # type: ignore[override]
        raise AssertionError("not called in this test")

    def executed(self, rows: int, busy_ns: int) -> None:
        self.batch_rows.append(rows)


class ModelHarness:
    """An instance with one batch, and the accounting of its model."""

    def __init__(self, timer: Timer, latencies: LatencySettings = LatencySettings()) -> None:  # noqa: B008
        self.dispatcher = Dispatcher(timer)
        self.dispatcher.mark_bounded()  # every release may let an idle instance run
        self.scheduler = CountingScheduler(SchedulerContext("m", 1, None, None, None, None))  # type: ignore[arg-type]
        self.dispatcher.attach(self.scheduler)
        self.dispatcher.mark_idle(Slot(InstanceContext("m_0_1", "CPU", 0, 1)))
        config = model_config('name: "m" max_batch_size: 8')
        log = logging.LoggerAdapter(logging.getLogger("tritonpy.backend"), {})
        context = ModelContext("m", 7, config, Path(), Path(), {}, {}, NoOptions(), None, log)  # type: ignore[arg-type]
        self.accounting = Accounting(context, latencies, self.dispatcher)
        self.slot = Slot(InstanceContext("m_0_0", "CPU", 0, 0))
        self.batch = self.batch_of(COUNT)

    def batch_of(self, count: int) -> Batch:
        requests = [
            InferRequest(
                "m", {}, SINK, received_ns=10 * number, queued_ns=20 * number, batch_size=2
            )
            for number in range(1, count + 1)
        ]
        batch = Batch(
            requests, instance=self.slot, start_ns=100, input_end_ns=150, infer_end_ns=250
        )
        for request in requests:
            request.batch = batch
        self.slot.open += count
        return batch

    def responses(self) -> list[InferResponse]:
        return [InferResponse((), "m", 7) for _ in self.batch.requests]

    def count(
        self, requests: list[InferRequest], responses: list[InferResponse], at: int = 300
    ) -> tuple[int, int]:
        with self.dispatcher.lock:
            pairs, last = self.accounting.record_responses(requests, responses, 0, at)
        assert [request for request, _ in pairs] == [
            each for each in requests if each in self.batch.requests
        ][: len(pairs)]
        return len(pairs), last


@pytest.fixture
def timer() -> Iterator[Timer]:
    timer = Timer()
    yield timer
    timer.stop()


def test_a_batch_is_counted_like_its_single_requests(timer: Timer) -> None:
    whole, single = ModelHarness(timer), ModelHarness(timer)
    assert whole.count(whole.batch.requests, whole.responses()) == (COUNT, COUNT)
    assert single.count(list(single.batch.requests), single.responses()) == (COUNT, COUNT)
    assert (whole.scheduler.releases, single.scheduler.releases) == (1, COUNT)
    counted = [harness.accounting.statistics() for harness in (whole, single)]
    for statistics in counted:
        statistics.last_inference = 0
    assert counted[0] == counted[1]
    times = counted[0].inference_stats
    assert (times.success.count, times.success.ns) == (COUNT, 290 + 280 + 270)
    assert (
        times.queue.ns,
        times.compute_input.ns,
        times.compute_infer.ns,
        times.compute_output.ns,
    ) == (
        180,
        150,
        300,
        150,
    )
    assert (counted[0].inference_count, counted[0].execution_count) == (2 * COUNT, 1)
    assert [each.finished for each in whole.batch.requests] == [True] * COUNT
    assert (whole.slot.open, single.slot.open) == (0, 0)


def already_completed(harness: ModelHarness, responses: list[InferResponse]) -> None:
    harness.count([harness.batch.requests[1]], [responses[1]])


def fails(_hall: ModelHarness, responses: list[InferResponse]) -> None:
    responses[1].error = Internal("no")


def is_not_final(_hall: ModelHarness, responses: list[InferResponse]) -> None:
    responses[1].final = False


def has_no_version(_hall: ModelHarness, responses: list[InferResponse]) -> None:
    responses[1].model_version = -1


def costs(harness: ModelHarness, _responses: list[InferResponse]) -> None:
    harness.batch.requests[1].compute_times = ComputeTimes()


@pytest.mark.parametrize(
    ("change", "expected", "left"),
    [
        (already_completed, (COUNT - 1, COUNT - 1), 0),
        (fails, (COUNT, COUNT), 0),
        (is_not_final, (COUNT, COUNT - 1), 1),
        (has_no_version, (COUNT, COUNT), 0),
        (costs, (COUNT, COUNT), 0),
    ],
)
def test_batches_with_special_responses_are_counted_one_by_one(
    timer: Timer,
    change: Callable[[ModelHarness, list[InferResponse]], None],
    expected: tuple[int, int],
    left: int,
) -> None:
    harness = ModelHarness(timer)
    responses = harness.responses()
    change(harness, responses)
    before = harness.scheduler.releases
    with harness.dispatcher.lock:
        pairs, last = harness.accounting.record_responses(harness.batch.requests, responses, 0, 300)
    assert (len(pairs), last) == expected
    assert harness.scheduler.releases == before + last
    assert harness.slot.open == left
    statistics = harness.accounting.statistics()
    assert statistics.execution_count == 1
    assert statistics.inference_stats.fail.count == (1 if change is fails else 0)
    assert all(response.model_version == 7 for response in responses)


def test_measured_responses_are_counted_one_by_one(timer: Timer) -> None:
    harness = ModelHarness(timer, LatencySettings(summaries=True))
    assert harness.count(harness.batch.requests, harness.responses()) == (COUNT, COUNT)
    assert harness.scheduler.releases == COUNT


def test_an_execution_that_was_counted_is_not_counted_again(timer: Timer) -> None:
    harness = ModelHarness(timer)
    harness.accounting.record_execution(harness.batch, 260)
    assert harness.count(harness.batch.requests, harness.responses()) == (COUNT, COUNT)
    assert harness.accounting.statistics().execution_count == 1


def test_no_responses_count_nothing(timer: Timer) -> None:
    assert ModelHarness(timer).count([], []) == (0, 0)


def test_policies_get_the_size_of_a_whole_batch(timer: Timer) -> None:
    harness, costs = ModelHarness(timer), Costs()
    harness.accounting.add_policy(costs)
    harness.count(harness.batch.requests, harness.responses())
    assert costs.batch_rows == [2 * COUNT]


class Released(DirectScheduler):
    """Records the released requests."""

    def __init__(self) -> None:
        super().__init__(SchedulerContext("m", 1, None, None, None, None))  # type: ignore[arg-type]
        self.left: list[InferRequest] = []

    def released(self, request: InferRequest, reschedule: bool) -> None:
        self.left.append(request)


def test_a_scheduler_with_released_is_notified_of_each_request(timer: Timer) -> None:
    harness, scheduler = ModelHarness(timer), Released()
    harness.dispatcher.attach(scheduler)
    before = now_ns()
    harness.count(harness.batch.requests, harness.responses(), before)
    assert scheduler.left == harness.batch.requests
    assert harness.slot.open == 0
