"""A backend that hands requests back for another turn, and a scheduler that takes them."""

from __future__ import annotations

from tritonpy.api.backend import Backend
from tritonpy.direct import DirectScheduler
from tritonpy.gather import scatter
from tritonpy.types import Batch, InferRequest


class ThreeTurns(Backend):
    """Answers a request at its third execution: OUT = IN + the number of executions."""

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        request.trace = (request.trace or 0) + 1
        if request.trace < 3:
            request.reschedule()
        else:
            batch.respond(scatter(batch, {"OUT": request.inputs["IN"].numpy() + request.trace}))


class ReschedulesThenFails(Backend):
    """Hands a request back and raises; the second execution answers."""

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        if request.trace is None:
            request.trace = "again"
            request.reschedule()
            raise ValueError("failed after handing the request back")
        batch.respond(scatter(batch, {"OUT": request.inputs["IN"].numpy()}))


class TurnScheduler(DirectScheduler):
    """First in, first out; who comes back goes to the end."""

    def released(self, request: InferRequest, reschedule: bool) -> None:
        if reschedule:
            self._queue.append(request)
