"""Requests that came together and differ in the values of their inputs alone: taken in together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tritonpy.clock import now_ns
from tritonpy.errors import Cancelled
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy.model.loaded import LoadedModel
    from tritonpy.model.request_check import RequestCheck
    from tritonpy.runners.deadlines import Deadlines

Refused = Callable[[InferRequest, Exception], None]


class AlikeRequests:
    """Does to many requests for one version what `LoadedModel.infer` does to one: a single check, a single moment under the lock.

    May be used from any thread. For models that answer once, have instances and no cache.
    """

    def __init__(self, model: LoadedModel, check: RequestCheck, deadlines: Deadlines) -> None:
        self._model = model
        self._check = check
        self._deadlines = deadlines

    def infer(self, requests: Sequence[InferRequest], refused: Refused) -> bool:
        """Take over `requests` that are alike (`Engine.infer_alike`); those that the model refuses go to `refused`, without any lock.

        False where each has to be looked at by itself: then nothing happened. Raises ModelClosed, and nothing happened either.
        """
        if not self._check.check_alike(requests):
            return False
        try:
            with self._model.dispatcher.lock:
                refusals = self._take_in(requests)
        finally:
            self._model.dispatcher.flush()
        for request, error in refusals:
            refused(request, error)
        for request in requests:
            if request.deadline_ns and request.owner is self._model:
                self._deadlines.watch(request)
        return True

    def _take_in(self, requests: Sequence[InferRequest]) -> list[tuple[InferRequest, Exception]]:
        model, now = self._model, now_ns()
        offer, count = model.dispatcher.offer, 0
        refusals: list[tuple[InferRequest, Exception]] = []
        for request in requests:
            request.queued_ns = now
            if not request.received_ns:
                request.received_ns = now
        if model.take_in_alike(requests):
            model.dispatcher.offered(len(requests), now)
            return refusals
        for request in requests:
            try:
                model.take_in(request)  # ModelClosed comes with the first of them, or not at all
            except Cancelled as error:
                refusals.append((request, error))
                continue
            try:
                offer(request)
                count += 1
            except Exception as error:
                model.give_back(request)
                refusals.append((request, error))
        if count:
            model.dispatcher.offered(count, now)
        return refusals
