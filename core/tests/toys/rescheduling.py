"""A backend that hands requests back for another turn, and a scheduler that takes them."""

from __future__ import annotations

from collections import Counter
from weakref import WeakKeyDictionary

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.direct import DirectScheduler
from tritonpy.gather import scatter
from tritonpy.types import Batch, InferRequest


class ThreeTurns(Backend):
    """Answers a request at its third execution: OUT = IN + the number of executions."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._turns: WeakKeyDictionary[InferRequest, int] = WeakKeyDictionary()

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        turn = self._turns[request] = self._turns.get(request, 0) + 1
        if turn < 3:
            request.reschedule()
        else:
            batch.respond(scatter(batch, {"OUT": request.inputs["IN"].numpy() + turn}))


class CountedTurns(Backend):
    """The same for requests with ids, which it counts by itself: in a process of its own nothing else stays of a request that is handed back."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._turns: Counter[str] = Counter()

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        self._turns[request.id] += 1
        if self._turns[request.id] < 3:
            request.reschedule()
        else:
            batch.respond(scatter(batch, {"OUT": request.inputs["IN"].numpy() + self._turns.pop(request.id)}))


class ReschedulesThenFails(Backend):
    """Hands its first request back and raises; the second execution answers."""

    _failed = False

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        if not self._failed:
            self._failed = True
            request.reschedule()
            raise ValueError("failed after handing the request back")
        batch.respond(scatter(batch, {"OUT": request.inputs["IN"].numpy()}))


class TurnScheduler(DirectScheduler):
    """First in, first out; who comes back goes to the end."""

    def released(self, request: InferRequest, reschedule: bool) -> None:
        if reschedule:
            self._queue.append(request)
