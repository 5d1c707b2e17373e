from __future__ import annotations

import pytest

from tritonpy import Batch, Cancelled, InferResponse, hookimpl
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.scheduling import UNBOUNDED, Scheduler
from tritonpy_testing import SchedulerContract, ToyEngine
from tritonpy_testing.contracts.plugin import PluginContract

CONFIG = 'name: "identity" max_batch_size: 8 input { name: "IN" data_type: TYPE_FP32 dims: 4 }'


class Grouping(Scheduler):
    """Waits 1 ms for more requests, then returns a batch of those that fit."""

    def __init__(self, context):
        super().__init__(context)
        self.queue = []

    def enqueue(self, request):
        self.queue.append(request)

    def ready(self, instance, now_ns):
        if not self.queue:
            return False
        due = self.queue[0].queued_ns + 1_000_000
        return True if now_ns >= due else due

    def take(self, instance, now_ns, limit=UNBOUNDED):
        taken, rows = [], 0
        while self.queue and len(taken) < limit and rows + self.queue[0].batch_size <= 8:
            taken.append(self.queue.pop(0))
            rows += taken[-1].batch_size
        return Batch(taken) if taken else None

    def cancel(self, request):
        if request in self.queue:
            self.queue.remove(request)
            request.respond(InferResponse.failed(request, Cancelled("cancelled")))

    def released(self, request, reschedule):
        if reschedule:
            self.queue.append(request)

    def pending(self):
        return tuple(self.queue)


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_schedulers():
        return {"grouping": Grouping}


class GroupingContract(SchedulerContract):
    plugin_class = Grouping
    config = CONFIG


class TestGrouping(GroupingContract):
    plugin = Plugin
    name = "grouping"


class TestDirect(SchedulerContract):
    plugin_class = DirectScheduler
    config = CONFIG


class ForwardingScheduler(Scheduler):
    """A scheduler without instances, which sends requests to another model of the engine."""

    uses_instances = False

    def enqueue(self, request):
        request.model_name = "identity"
        self.context.engine.infer(request)


class TestForwardingScheduler(SchedulerContract):
    plugin_class = ForwardingScheduler
    config = CONFIG

    def make_engine(self):
        return UnansweringEngine()


def test_a_scheduler_without_instances_must_only_respond(tests):
    of_every_plugin = tests(TestForwardingScheduler) & set(dir(PluginContract))
    assert tests(TestForwardingScheduler) - of_every_plugin == {
        "test_every_request_is_answered_exactly_once"
    }


class UnansweringEngine(ToyEngine):
    """Leaves requests with their recording sink."""

    def infer(self, request):
        owner = request.owner
        super().infer(request)
        request.owner = owner


class Losing(Grouping):
    count = 0

    def enqueue(self, request):
        self.count += 1
        if self.count % 7:
            super().enqueue(request)


class AnsweringTwice(Grouping):
    def take(self, instance, now_ns, limit=UNBOUNDED):
        batch = super().take(instance, now_ns, limit)
        if batch:
            batch.requests[0].respond(
                InferResponse.failed(batch.requests[0], Cancelled("too late"))
            )
        return batch


class Limitless(Grouping):
    def take(self, instance, now_ns, limit=UNBOUNDED):
        return super().take(instance, now_ns)


class TooLarge(Grouping):
    def take(self, instance, now_ns, limit=UNBOUNDED):
        taken, self.queue = self.queue[:limit], self.queue[limit:]
        return Batch(taken) if taken else None


class AlwaysReady(Grouping):
    def ready(self, instance, now_ns):
        return True


class InThePast(Grouping):
    def ready(self, instance, now_ns):
        return now_ns - 1 if self.queue else False


class Sleeping(Grouping):
    def ready(self, instance, now_ns):
        return False


class Putting(Grouping):
    def ready(self, instance, now_ns):
        return now_ns + 1 if self.queue else False


class Uncancellable(Grouping):
    def cancel(self, request):
        """Do nothing."""


class CancelsWithoutResponse(Grouping):
    def cancel(self, request):
        if request in self.queue:
            self.queue.remove(request)


class CancelsAnything(Grouping):
    def cancel(self, request):
        if request in self.queue:
            self.queue.remove(request)
        request.respond(InferResponse.failed(request, Cancelled("cancelled")))


class Secretive(Grouping):
    def pending(self):
        return ()


class DropsAtStop(Grouping):
    def stop(self):
        self.queue.clear()


class DropsRescheduled(Grouping):
    def released(self, request, reschedule):
        """Do nothing."""


BROKEN = {
    Losing: "test_every_request_is_answered_exactly_once",
    AnsweringTwice: "test_every_request_is_answered_exactly_once",
    Limitless: "test_take_keeps_to_its_limit",
    TooLarge: "test_a_batch_keeps_to_the_maximum_size",
    AlwaysReady: "test_an_empty_queue_is_not_ready",
    InThePast: "test_every_request_is_answered_exactly_once",
    Sleeping: "test_every_request_is_answered_exactly_once",
    Putting: "test_every_request_is_answered_exactly_once",
    Uncancellable: "test_a_waiting_request_can_be_cancelled",
    CancelsWithoutResponse: "test_a_waiting_request_can_be_cancelled",
    CancelsAnything: "test_cancelling_a_request_that_does_not_wait_does_nothing",
    Secretive: "test_waiting_requests_are_pending",
    DropsAtStop: "test_waiting_requests_run_after_stop",
    DropsRescheduled: "test_a_rescheduled_request_is_answered_once",
}


@pytest.mark.parametrize("scheduler", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_scheduler_fails(failures, scheduler):
    contract = type("Broken", (GroupingContract,), {"plugin_class": scheduler})
    assert BROKEN[scheduler] in failures(contract)
