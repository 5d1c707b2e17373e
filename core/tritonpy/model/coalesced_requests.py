"""Admission of coalesced requests, which differ only in the values of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tritonpy.clock import now_ns
from tritonpy.errors import Cancelled
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy.model.loaded_model import LoadedModel
    from tritonpy.model.request_check import RequestCheck
    from tritonpy.runners.deadlines import Deadlines

Refused = Callable[[InferRequest, Exception], None]


class CoalescedRequests:
    """Handles many requests for one version with one check and one acquisition of the lock.

    Equivalent to calling `LoadedModel.infer` for each request. Safe to call from any thread. Only
    for models that respond once per request, have instances and use no response cache.
    """

    def __init__(self, model: LoadedModel, check: RequestCheck, deadlines: Deadlines) -> None:
        self._model = model
        self._check = check
        self._deadlines = deadlines

    def infer(self, requests: Sequence[InferRequest], refused: Refused) -> bool:
        """Accept coalesced `requests`; call `refused` without any lock for each one that is rejected.

        False if the requests must be checked one by one. Raises `ModelClosed` if the version takes
        no requests. In both cases no request was accepted.
        """
        if not self._check.check_coalesced(requests):
            return False
        try:
            with self._model.dispatcher.lock:
                refusals = self._accept(requests)
        finally:
            self._model.dispatcher.flush()
        for request, error in refusals:
            refused(request, error)
        for request in requests:
            if request.deadline_ns and request.owner is self._model:
                self._deadlines.watch(request)
        return True

    def _accept(self, requests: Sequence[InferRequest]) -> list[tuple[InferRequest, Exception]]:
        model, now = self._model, now_ns()
        offer, count = model.dispatcher.offer, 0
        refusals: list[tuple[InferRequest, Exception]] = []
        for request in requests:
            request.queued_ns = now
            if not request.received_ns:
                request.received_ns = now
        if model.accept_coalesced(requests):
            model.dispatcher.announce(len(requests), now)
            return refusals
        for request in requests:
            try:
                model.accept(request)  # raises ModelClosed for the first request or for none
            except Cancelled as error:
                refusals.append((request, error))
                continue
            try:
                offer(request)
                count += 1
            except Exception as error:
                model.disown(request)
                refusals.append((request, error))
        if count:
            model.dispatcher.announce(count, now)
        return refusals
