"""Backends that reschedule requests, and a scheduler that takes them."""

from __future__ import annotations

from collections import Counter
from weakref import WeakKeyDictionary

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy_batching.gather import scatter
from tritonpy_types import Batch, InferRequest


class ThreeExecutions(Backend):
    """Responds at the third execution of a request: OUT = IN + the number of executions."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._executions: WeakKeyDictionary[InferRequest, int] = WeakKeyDictionary()

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        count = self._executions[request] = self._executions.get(request, 0) + 1
        if count < 3:
            request.reschedule()
        else:
            batch.respond(scatter(batch, {"OUT": request.inputs["IN"].numpy() + count}))


class CountedExecutions(Backend):
    """The same for requests with ids, which it counts itself.

    In an isolated process no other state of a rescheduled request remains.
    """

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._executions: Counter[str] = Counter()

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        self._executions[request.id] += 1
        if self._executions[request.id] < 3:
            request.reschedule()
        else:
            batch.respond(
                scatter(
                    batch, {"OUT": request.inputs["IN"].numpy() + self._executions.pop(request.id)}
                )
            )


class ReschedulesThenFails(Backend):
    """Reschedules its first request and raises; the second execution responds."""

    _failed = False

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        if not self._failed:
            self._failed = True
            request.reschedule()
            raise ValueError("failed after rescheduling the request")
        batch.respond(scatter(batch, {"OUT": request.inputs["IN"].numpy()}))


class ReschedulingScheduler(DirectScheduler):
    """First in, first out; rescheduled requests go to the end."""

    def released(self, request: InferRequest, reschedule: bool) -> None:
        if reschedule:
            self._queue.append(request)
