"""What the executions and the answers of one version come to: its counters, and who learns from them. All of it is called under the model's lock."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy.api.backend import ModelContext
from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.engine import ModelStatistics
from tritonpy.config.server.latency_settings import LatencySettings
from tritonpy.model.bystanders import teach
from tritonpy.model.caching import ModelCache
from tritonpy.model.ordering import Answer
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.statistics import AnswerStatistics, Counters, Succeeded
from tritonpy.types import Batch, InferRequest, InferResponse


class Accounting:
    """Counts each request once, when its final answer leaves, and each execution with the first answer that it gave."""

    def __init__(self, context: ModelContext, latencies: LatencySettings, dispatcher: Dispatcher) -> None:
        self._name, self._version = context.name, context.version
        self.counters = Counters()
        self.answers = AnswerStatistics(context.config, latencies)
        self.each_answer = self.answers.counters
        self._dispatcher = dispatcher
        self._learners: list[BatchPolicy] = []

    def teach(self, policy: BatchPolicy) -> None:
        """Tell `policy` from now on what each batch cost, if it wants to know."""
        if type(policy).executed is not BatchPolicy.executed:
            self._learners.append(policy)

    def use_cache(self, cache: ModelCache) -> None:
        """Show `cache` each answer, and count what it gives."""
        self.answers.use_cache()
        self.each_answer = (*self.each_answer, cache)

    def statistics(self) -> ModelStatistics:
        """Return everything counted, as of one moment."""
        return self.counters.snapshot(self._name, self._version, self.answers.responses())

    def executed(self, batch: Batch, now_ns: int) -> None:
        """Count one execution."""
        self.counters.executed(batch, now_ns)
        if self.each_answer:
            self.answers.executed(batch)
        if self._learners:
            teach(self._learners, batch, now_ns)

    def name(self, request: InferRequest, response: InferResponse) -> None:
        """Say in `response` what answered which request."""
        response.model_name, response.model_version, response.id = self._name, self._version, request.id

    def answered(
        self, requests: Sequence[InferRequest], responses: Sequence[InferResponse], handed_ns: int, now_ns: int
    ) -> tuple[list[Answer], int]:
        """Return the answers that have to be sent, and how many of them are the last one of their request. What comes after that is dropped and counted."""
        done = self._whole_batch(requests, responses, now_ns)
        if done is not None and done.batch is not None:
            self._batch_answered(done.batch, done)
            return list(zip(requests, responses, strict=True)), done.count
        return self._one_by_one(requests, responses, handed_ns, now_ns)

    def _whole_batch(
        self, requests: Sequence[InferRequest], responses: Sequence[InferResponse], now_ns: int
    ) -> Succeeded | None:
        """Return what a batch comes to that leaves as it was run, each request with its only answer: it is counted at a fraction of the cost."""
        batch = requests[0].batch if requests else None
        if batch is None or requests is not batch.requests or batch.counted or self.each_answer:
            return None
        rows = received_ns = queued_ns = 0
        for request, response in zip(requests, responses, strict=True):
            if request.answered or request.batch is not batch or request.work is not None:
                return None
            if response.error is not None or not response.final or response.model_version < 0:
                return None
            rows += request.batch_size
            received_ns += request.received_ns
            queued_ns += request.queued_ns
        count = len(requests)
        return Succeeded(batch, now_ns, count, rows, count * now_ns - received_ns, count * batch.start_ns - queued_ns)

    def _batch_answered(self, batch: Batch, done: Succeeded) -> None:
        self.executed(batch, done.end_ns)
        self.counters.succeeded(done)
        for request in batch.requests:
            request.answered = True
        self._dispatcher.all_left(batch)

    def _one_by_one(
        self, requests: Sequence[InferRequest], responses: Sequence[InferResponse], handed_ns: int, now_ns: int
    ) -> tuple[list[Answer], int]:
        counters, answers, last, done = self.counters, list[Answer](), 0, Succeeded(None, now_ns)
        for request, response in zip(requests, responses, strict=True):
            if request.answered:
                counters.late_answers += 1
                continue
            answers.append((request, response))
            if response.model_version < 0:
                self.name(request, response)
            batch = request.batch
            if batch is not None and not batch.counted:
                self.executed(batch, now_ns)
            for counter in self.each_answer:
                counter.answered(request, response, handed_ns, now_ns)
            if not response.final:
                continue
            request.answered = True
            last += 1
            if response.error is None:
                if done.batch is not batch:
                    if done.count:  # workers answer several executions at once
                        counters.succeeded(done)
                    done = Succeeded(batch, now_ns)
                self._succeeded(request, done)
            else:
                counters.failed(response.error.reason, now_ns - request.received_ns)
            self._dispatcher.left(request, reschedule=False)
        if done.count:
            counters.succeeded(done)
        return answers, last

    def _succeeded(self, request: InferRequest, done: Succeeded) -> None:
        batch = done.batch
        done.count += 1
        done.rows += request.batch_size
        done.total_ns += done.end_ns - request.received_ns
        if request.work is not None:
            self.counters.worked(request.work, batch, request.batch_size, done.end_ns)
        begun = batch or request.work
        done.queue_ns += (begun.start_ns if begun is not None else done.end_ns) - request.queued_ns
