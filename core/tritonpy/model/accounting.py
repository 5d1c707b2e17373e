"""Counters of one model version, updated by its executions and responses.

Every method is called under the model's lock.
"""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.contexts import ModelContext
from tritonpy.api.engine import ModelStatistics
from tritonpy.model.delivery import RequestResponse
from tritonpy.model.model_cache import ModelResponseCache
from tritonpy.model.notifications import notify_policies
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.statistics import Counters, PerResponseStatistics, SucceededRequests
from tritonpy_config.server.sections import LatencySettings
from tritonpy_types import Batch, InferRequest, InferResponse


class Accounting:
    """Counts each request with its final response, and each execution with its first response."""

    def __init__(
        self, context: ModelContext, latencies: LatencySettings, dispatcher: Dispatcher
    ) -> None:
        self._name, self._version = context.name, context.version
        self.counters = Counters()
        self.response_statistics = PerResponseStatistics(context.config, latencies)
        self.response_counters = self.response_statistics.counters
        self._dispatcher = dispatcher
        self._learning_policies: list[BatchPolicy] = []

    def add_policy(self, policy: BatchPolicy) -> None:
        """Report the cost of each batch to `policy` from now on, if it overrides `executed`."""
        if type(policy).executed is not BatchPolicy.executed:
            self._learning_policies.append(policy)

    def use_cache(self, cache: ModelResponseCache) -> None:
        """Pass each response to `cache`, and count responses that come from it."""
        self.response_statistics.use_cache()
        self.response_counters = (*self.response_counters, cache)

    def statistics(self) -> ModelStatistics:
        """Return a consistent snapshot of all counters."""
        return self.counters.snapshot(
            self._name, self._version, self.response_statistics.responses()
        )

    def record_execution(self, batch: Batch, now_ns: int) -> None:
        """Count one execution."""
        self.counters.executed(batch, now_ns)
        if self.response_counters:
            self.response_statistics.executed(batch)
        if self._learning_policies:
            notify_policies(self._learning_policies, batch, now_ns)

    def set_identity(self, request: InferRequest, response: InferResponse) -> None:
        """Set model name, model version and request id in `response`."""
        response.model_name, response.model_version, response.id = (
            self._name,
            self._version,
            request.id,
        )

    def record_responses(
        self,
        requests: Sequence[InferRequest],
        responses: Sequence[InferResponse],
        response_ns: int,
        now_ns: int,
    ) -> tuple[list[RequestResponse], int]:
        """Return the (request, response) pairs to send, and how many of them are final.

        Responses after a final one are dropped and counted.
        """
        batch = requests[0].batch if requests else None
        if (
            batch is not None
            and requests is batch.requests
            and not batch.counted
            and not self.response_counters
            and self._record_whole_batch(batch, responses, now_ns)
        ):
            return list(zip(requests, responses, strict=True)), len(requests)
        return self._record_each(requests, responses, response_ns, now_ns)

    def _record_whole_batch(
        self, batch: Batch, responses: Sequence[InferResponse], now_ns: int
    ) -> bool:
        """Count a batch in which each request gets its only response.

        Returns False if its responses must be counted one by one, which costs several times as
        much.
        """
        rows = received_ns = queued_ns = 0
        for request, response in zip(batch.requests, responses, strict=True):
            if request.finished or request.batch is not batch or request.compute_times is not None:
                return False
            if response.error is not None or not response.final or response.model_version < 0:
                return False
            rows += request.batch_size
            received_ns += request.received_ns
            queued_ns += request.queued_ns
        self.counters.batch_succeeded(batch, rows, received_ns, queued_ns, now_ns)
        if self._learning_policies:
            notify_policies(self._learning_policies, batch, now_ns)
        for request in batch.requests:
            request.finished = True
        self._dispatcher.release_all(batch)
        return True

    def _record_each(
        self,
        requests: Sequence[InferRequest],
        responses: Sequence[InferResponse],
        response_ns: int,
        now_ns: int,
    ) -> tuple[list[RequestResponse], int]:
        counters, pairs, last, done = (
            self.counters,
            list[RequestResponse](),
            0,
            SucceededRequests(None, now_ns),
        )
        for request, response in zip(requests, responses, strict=True):
            if request.finished:
                counters.late_responses += 1
                continue
            pairs.append((request, response))
            if response.model_version < 0:
                self.set_identity(request, response)
            batch = request.batch
            if batch is not None and not batch.counted:
                self.record_execution(batch, now_ns)
            for counter in self.response_counters:
                counter.responded(request, response, response_ns, now_ns)
            if not response.final:
                continue
            request.finished = True
            last += 1
            if response.error is None:
                if done.batch is not batch:
                    if done.count:  # a worker may respond to several executions at once
                        counters.succeeded(done)
                    done = SucceededRequests(batch, now_ns)
                self._add_success(request, done)
            else:
                counters.failed(response.error.reason, now_ns - request.received_ns)
            self._dispatcher.release(request, reschedule=False)
        if done.count:
            counters.succeeded(done)
        return pairs, last

    def _add_success(self, request: InferRequest, done: SucceededRequests) -> None:
        batch = done.batch
        done.count += 1
        done.rows += request.batch_size
        done.total_ns += done.end_ns - request.received_ns
        if request.compute_times is not None:
            self.counters.add_compute_times(
                request.compute_times, batch, request.batch_size, done.end_ns
            )
        started = batch or request.compute_times
        done.queue_ns += (
            started.start_ns if started is not None else done.end_ns
        ) - request.queued_ns
