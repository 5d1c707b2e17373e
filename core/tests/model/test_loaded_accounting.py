"""Counters agree with what callers see, whatever happens to their requests."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.model.request_check import RequestCheck
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.runners.slot import Slot
from tritonpy.runners.timer import Timer
from tritonpy_config.options import NoOptions
from tritonpy_config.server.sections import LatencySettings
from tritonpy_testing.parse import model_config
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import InferRequest, InferResponse, Tensor
from tritonpy_types.errors import (
    Cancelled,
    Internal,
    InvalidArgument,
    QueueFull,
    QueueTimeout,
    TritonError,
    Unavailable,
)

CONFIG = """
name: "m"
model_transaction_policy {{ decoupled: {} }}
instance_group [{{ kind: KIND_GPU gpus: [0] }}]
input [{{ name: "IN" data_type: TYPE_INT32 dims: [1] }}]
output [{{ name: "OUT" data_type: TYPE_INT32 dims: [1] }}]
"""
QUEUE_SIZE = 3
BROKEN = InferResponse((), error=Internal("the model broke"))
which = st.integers(0, 10)


def no_policy(name: str) -> BatchPolicy:
    raise AssertionError(f"no test needs policy '{name}' here")


class Bounded(DirectScheduler):
    """A scheduler with a short queue."""

    def enqueue(self, request: InferRequest) -> None:
        if len(self._queue) >= QUEUE_SIZE:
            raise QueueFull("Exceeds maximum queue size")
        super().enqueue(request)

    def time_out(self) -> None:
        """Fail the oldest request with a queue timeout."""
        request = self._queue.popleft()
        request.respond(InferResponse.failed(request, QueueTimeout("Request timeout expired")))


class Requests(RuleBasedStateMachine):
    """One model whose only instance is the test.

    It takes requests and responds with success, failure, partial or late responses, one by one or
    in batches.
    """

    def __init__(self) -> None:
        super().__init__()
        self.timer, self.recorder, self.engine = Timer(), RecordingSink(), ToyEngine()
        self.waiting: list[InferRequest] = []
        self.running: list[InferRequest] = []
        self.ended: list[InferRequest] = []
        self.responded = 0  # number of responses sent by the model
        self.late = 0

    @initialize(decoupled=st.booleans(), measured=st.booleans())
    def load(self, decoupled: bool, measured: bool) -> None:
        self.measured = measured
        config = model_config(CONFIG.format(str(decoupled).lower()))
        log = logging.LoggerAdapter(
            logging.getLogger("tritonpy.backend"), {"model": "m", "version": 1}
        )
        context = ModelContext(
            "m", 1, config, Path(), Path(), {}, {}, NoOptions(), self.engine, log
        )
        latencies = LatencySettings(histograms=measured, summaries=measured)
        self.model = LoadedModel(
            context, RequestCheck(config, "m"), {}, self.timer, (), latencies=latencies
        )
        self.scheduler = Bounded(
            SchedulerContext("m", 1, config, self.engine, no_policy, self.model.dispatcher.wake)
        )
        self.model.attach(self.scheduler)
        self.slot = Slot(InstanceContext("m_0", "GPU", 0, 0))

    def update_lists(self) -> None:
        """Move completed requests to `ended`."""
        for group in (self.waiting, self.running):
            for request in [each for each in group if each.finished]:
                group.remove(request)
                self.ended.append(request)

    def pick(self, number: int) -> InferRequest:
        return self.running[number % len(self.running)]

    @rule(wrong=st.booleans())
    def send(self, wrong: bool) -> None:
        tensor = Tensor.from_numpy("IN", np.zeros(2 if wrong else 1, np.int32))
        request = InferRequest("m", {"IN": tensor}, self.recorder.sink, accepts_decoupled=True)
        try:
            self.model.infer(request)
        except (QueueFull, InvalidArgument):
            assert wrong or len(self.waiting) == QUEUE_SIZE
        else:
            self.waiting.append(request)

    @rule()
    def take(self) -> None:
        batch = self.model.dispatcher.take_or_idle(self.slot)
        self.slot.wakeup.acquire(blocking=False)
        for request in batch.requests if batch is not None else ():
            self.waiting.remove(request)
            self.running.append(request)

    @precondition(lambda self: self.running)
    @rule(number=which, final=st.booleans(), empty=st.booleans())
    def succeed(self, number: int, final: bool, empty: bool) -> None:
        final = final or not self.model.decoupled
        outputs = () if empty else [Tensor.from_numpy("OUT", np.zeros(1, np.int32))]
        self.pick(number).respond(InferResponse(outputs, final=final, empty=empty and final))
        self.responded += 1
        self.update_lists()

    @precondition(lambda self: self.running)
    @rule(number=which, error=st.sampled_from([Internal, Cancelled, Unavailable]))
    def fail(self, number: int, error: type[TritonError]) -> None:
        request = self.pick(number)
        request.respond(InferResponse.failed(request, error("it failed")))
        self.responded += 1
        self.update_lists()

    @precondition(lambda self: self.running)
    @rule()
    def respond_to_all(self) -> None:
        self.model.respond(self.running, [InferResponse(()) for _ in self.running])
        self.responded += len(self.running)
        self.update_lists()

    @precondition(lambda self: self.running)
    @rule(number=which)
    def respond_to_a_batch(self, number: int) -> None:
        batch = self.pick(number).batch
        batch.respond([InferResponse((), "m", 1) for _ in batch.requests])
        self.responded += len(batch.requests)
        self.update_lists()

    @precondition(lambda self: self.running)
    @rule(number=which)
    def hand_back(self, number: int) -> None:
        self.pick(number).reschedule()  # this scheduler rejects it
        self.update_lists()

    @precondition(lambda self: self.ended)
    @rule(number=which)
    def respond_late(self, number: int) -> None:
        self.ended[number % len(self.ended)].respond(InferResponse(()))
        self.late += 1

    @rule(number=which)
    def cancel(self, number: int) -> None:
        requests = [*self.waiting, *self.running, *self.ended]
        if requests:
            requests[number % len(requests)].cancel()
        self.update_lists()

    @precondition(lambda self: self.waiting)
    @rule()
    def wait_too_long(self) -> None:
        with self.model.dispatcher.lock:
            self.scheduler.time_out()
        self.model.dispatcher.flush()
        self.update_lists()

    @invariant()
    def sums_agree(self) -> None:
        statistics, gauges = self.model.statistics(), self.model.gauges()
        times = statistics.inference_stats
        responses = [
            response
            for request in self.ended
            for response in self.recorder.responses(request)
            if response.final
        ]
        assert times.success.count + times.fail.count == len(self.ended) == len(responses)
        assert (
            times.fail.count
            == sum(gauges.failures.values())
            == sum(response.error is not None for response in responses)
        )
        assert (gauges.pending, gauges.late_responses) == (len(self.waiting), self.late)
        assert self.model.in_flight == len(self.waiting) + len(self.running)
        assert statistics.inference_count == times.success.count
        for part in (times.queue, times.compute_input, times.compute_infer, times.compute_output):
            assert part.count == times.success.count
        assert statistics.execution_count == sum(
            batch.compute_infer.count for batch in statistics.batch_stats
        )

    @precondition(lambda self: self.measured)
    @invariant()
    def shares_are_the_whole(self) -> None:
        whole, gauges = self.model.statistics(), self.model.gauges()
        parts = [share.statistics for share in gauges.shares]
        assert [share.gpu for share in gauges.shares] == [None, 0]
        for read in (
            lambda each: each.inference_stats.success,
            lambda each: each.inference_stats.queue,
            lambda each: each.inference_stats.fail,
        ):
            assert (
                sum(read(part).count for part in parts),
                sum(read(part).ns for part in parts),
            ) == (
                read(whole).count,
                read(whole).ns,
            )
        assert sum(part.execution_count for part in parts) == whole.execution_count
        assert {
            reason: sum(share.failures[reason] for share in gauges.shares)
            for reason in gauges.failures
        } == gauges.failures

    @precondition(lambda self: self.measured)
    @invariant()
    def distributions_agree(self) -> None:
        gauges, success = self.model.gauges(), self.model.statistics().inference_stats.success.count
        requests = [*self.waiting, *self.running, *self.ended]
        responded = [
            request
            for request in requests
            if any(not response.empty for response in self.recorder.responses(request))
        ]
        assert gauges.first_response is not None
        assert gauges.first_response.count == len(responded)
        assert {summary.count for summary in gauges.summaries.values()} == {success}

    @invariant()
    def response_statistics_agree(self) -> None:
        by_index = self.model.statistics().response_stats
        counted = sum(
            each.success.count + each.fail.count + each.empty_response.count + each.cancel.count
            for each in by_index.values()
        )
        assert counted == (self.responded if self.model.decoupled else 0)

    def teardown(self) -> None:
        for request in list(self.waiting):
            request.cancel()
        self.model.respond(self.running, [BROKEN] * len(self.running))
        self.update_lists()
        self.sums_agree()
        self.recorder.check(*self.ended)
        assert (self.model.in_flight, self.model.gauges().pending) == (0, 0)
        self.model.close()
        self.timer.stop()
        self.engine.__exit__()


def test_counters_are_consistent_for_any_outcome_of_requests() -> None:
    run_state_machine_as_test(
        Requests, settings=settings(max_examples=30, stateful_step_count=30, deadline=None)
    )
