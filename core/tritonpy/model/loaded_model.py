"""One loaded version of a model: admission, scheduling, statistics and responses."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

from tritonpy.api.contexts import ModelContext
from tritonpy.api.engine import ModelGauges, ModelStatistics
from tritonpy.api.observer import Observer
from tritonpy.api.scheduler import Scheduler
from tritonpy.model.accounting import Accounting
from tritonpy.model.cache_key import CacheKeyBuilder
from tritonpy.model.delivery import ImmediateDelivery, OrderedDelivery, RequestResponse
from tritonpy.model.model_cache import ModelResponseCache
from tritonpy.model.model_closed import ModelClosed
from tritonpy.model.notifications import notify_observers
from tritonpy.model.request_check import RequestCheck
from tritonpy.model.response_cache import ResponseCache
from tritonpy.model.response_postprocessor import ResponsePostprocessor
from tritonpy.runners.batch_callbacks import BatchCallbacks
from tritonpy.runners.deadlines import Deadlines
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.instances import Instances
from tritonpy.runners.runner import Runner
from tritonpy.runners.timer import Timer
from tritonpy.runners.wakeups import Wakeups
from tritonpy_config.server.sections import NO_LATENCIES, LatencySettings
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types import Batch, InferRequest, InferResponse
from tritonpy_types.clock import now_ns
from tritonpy_types.error_ids import internal_error
from tritonpy_types.errors import (
    Cancelled,
    DecoupledRefused,
    FailureReason,
    Internal,
    TritonError,
    Unavailable,
    exception_text,
)
from tritonpy_types.request import UNOWNED

log = logging.getLogger("tritonpy.model")


def admit_strings(batch: Batch, check: RequestCheck) -> bool:
    """Check large BYTES tensors of a batch and reject invalid requests.

    Return whether any request is left to execute.
    """
    rejected = False
    for request in batch.requests:
        if request.unchecked_strings:
            try:
                check.check_strings(request)
            except TritonError as error:
                rejected = True
                request.respond(InferResponse.failed(request, error))
    if rejected:
        batch.requests = [request for request in batch.requests if not request.finished]
        if batch.slots is not None:
            batch.slots = [None if slot is None or slot.finished else slot for slot in batch.slots]
    return bool(batch.requests)


def backend_error(error: BaseException) -> TritonError:
    """Return the client error for an exception of a backend.

    A `TritonError` keeps its text and code. Any other exception becomes `Internal` with the name of
    its type.
    """
    if isinstance(error, TritonError):
        reason = error.reason if error.reason is FailureReason.CANCELED else FailureReason.BACKEND
        return type(error)(error.message, reason)
    return Internal(exception_text(error), FailureReason.BACKEND)


class LoadedModel:
    """One version: owns its requests (`types.Owner`) and ensures that each one is completed.

    A response is postprocessed (reshape, classification, shared memory), counted under the lock,
    reported to observers, and sent. Responses after the final one are dropped.
    """

    def __init__(
        self,
        context: ModelContext,
        check: RequestCheck,
        labels: Mapping[str, Sequence[str]],
        timer: Timer,
        observers: Sequence[Observer],
        wakeups: Wakeups | None = None,
        latencies: LatencySettings = NO_LATENCIES,
    ) -> None:
        self.context, config = context, context.config
        self.name, self.version = context.name, context.version
        self.decoupled = config.model_transaction_policy.decoupled
        self.load_seconds = 0.0
        self.dispatcher = Dispatcher(timer, wakeups)
        self.dispatcher.flush, self.dispatcher.failed = self._flush, self._drop
        self.accounting = Accounting(context, latencies, self.dispatcher)
        self.callbacks = BatchCallbacks(self._admit, self._drop, self._fail)
        self.runner: Runner | None = None
        self.instances: Instances | None = None
        self._check = check
        self.labels = labels
        # The members of an ensemble, by the name and version that its steps call.
        self.members: Mapping[tuple[str, int], LoadedModel] = {}
        self._request_parameters: frozenset[str] | None = None
        self._postprocessor = ResponsePostprocessor(
            check.outputs, labels, config.max_batch_size > 0
        )
        self._cache: ModelResponseCache | None = None
        self._deadlines = Deadlines(timer)
        self._takes_coalesced = False
        self._observers = observers
        self._delivery = (
            OrderedDelivery() if config.dynamic_batching.preserve_ordering else ImmediateDelivery()
        )
        self._lock = self.dispatcher.lock
        self._deferred_responses: list[RequestResponse] = []
        self._in_flight = 0
        self._is_closing = False
        self.drained = threading.Event()
        self._scheduler: Scheduler

    def use_cache(self, cache: ResponseCache, identity: bytes) -> None:
        """Cache responses in `cache`, under keys derived from `identity`.

        `identity` distinguishes this version from all others. Call it before the first request.
        """
        keys = CacheKeyBuilder(identity, [output.name for output in self.config.output])
        self._cache = ModelResponseCache(cache, keys, self, self._lock, self.accounting.counters)
        self.accounting.use_cache(self._cache)

    def attach(self, scheduler: Scheduler) -> None:
        """Set the scheduler; called once, before the first request."""
        self._scheduler = scheduler
        self._uses_instances = scheduler.uses_instances
        self._takes_coalesced = (
            scheduler.uses_instances and self._cache is None and not self.decoupled
        )
        self.dispatcher.attach(scheduler)

    @property
    def config(self) -> ModelConfig:
        """The configuration; an in-place update of the instances replaces it."""
        return self.context.config

    @property
    def request_parameters(self) -> frozenset[str] | None:
        """The request parameters that the backend reads; None if it may read any.

        An ensemble's are those of its members.
        """
        if not self.members:
            return self._request_parameters
        read: set[str] = set()
        for member in self.members.values():
            names = member.request_parameters
            if names is None:
                return None
            read |= names
        return frozenset(read)

    @request_parameters.setter
    def request_parameters(self, names: frozenset[str] | None) -> None:
        self._request_parameters = names

    @property
    def waiting(self) -> int:
        """The number of requests that wait for an instance."""
        return self.dispatcher.waiting

    @property
    def in_flight(self) -> int:
        """The number of accepted requests without a final response."""
        return self._in_flight

    @property
    def last_use_ms(self) -> int:
        """The time of the last execution, in ms since 1970; 0 if there was none."""
        return self.accounting.counters.last_inference_ms

    def is_in_use(self) -> bool:
        """Return whether requests are in flight or sequences wait for their next request.

        The result stays valid only while the caller holds `dispatcher.lock`.
        """
        with self._lock:
            return self._in_flight > 0 or self._scheduler.is_live()

    def stop_accepting(self) -> None:
        """Accept no more requests: `infer` raises `ModelClosed` from now on."""
        with self._lock:
            self._is_closing = True

    def statistics(self) -> ModelStatistics:
        """Return a consistent snapshot of all counters."""
        with self._lock:
            counted = self.accounting.statistics()
        counted.namespace = self.context.namespace
        if self.runner is not None:
            counted.memory_usage = list(self.runner.memory_usage())
        return counted

    def gauges(self) -> ModelGauges:
        """Return a consistent snapshot of the values that only the metrics show."""
        counters, responses = self.accounting.counters, self.accounting.response_statistics
        with self._lock:
            return ModelGauges(
                failures=dict(counters.failures),
                pending=self.waiting,
                load_seconds=self.load_seconds,
                late_responses=counters.late_responses,
                tags=dict(self.config.metric_tags),
                first_response=responses.first_response(),
                summaries=responses.summaries(),
                shares=responses.shares(self.name, self.version),
                cached=self._cache is not None,
            )

    def is_alive(self) -> bool:
        """Return whether every instance is known to be alive, without asking it."""
        return self.runner is None or self.runner.alive()

    def is_ready(self) -> bool:
        """Ask every instance whether it can serve; may take seconds."""
        return self.runner is None or self.runner.is_ready()

    def check_decoupled(self, request: InferRequest) -> None:
        """Raise `DecoupledRefused` if the model is decoupled and the caller takes one response."""
        if self.decoupled and not request.accepts_decoupled:
            raise DecoupledRefused(
                f"model '{self.name}' is decoupled, but the caller accepts only one response"
            )

    def infer(self, request: InferRequest) -> None:
        """Accept `request`.

        Raises a `TritonError`, or `ModelClosed`, if the request is rejected; the caller then still
        owns it.
        """
        if self.decoupled:
            self.check_decoupled(request)
        self._check.check(request)
        request.queued_ns = now = now_ns()
        if not request.received_ns:
            request.received_ns = now
        if request.trace is not None:
            request.trace.begin(self.name, self.version, request)
        try:
            if self._cache is None or not self._cache.serve(request):
                with self._lock:
                    self.accept(request)
                    if self._uses_instances:
                        self._enqueue(request)
                if not self._uses_instances:
                    self._enqueue(request)
        finally:
            if self._deferred_responses:
                self._flush()
        if request.deadline_ns:
            self._deadlines.watch(request)

    def accept(self, request: InferRequest) -> None:
        """Own `request` until its final response; called under the lock.

        Raises `ModelClosed` or `Cancelled`.
        """
        if self._is_closing:
            raise ModelClosed
        if request.cancelled:
            raise Cancelled("Request cancelled")
        self._in_flight += 1
        request.owner = self
        self._delivery.register((request,))

    def infer_coalesced(
        self, requests: Sequence[InferRequest], refused: Callable[[InferRequest, Exception], None]
    ) -> bool:
        """Accept requests that differ only in input values, with one check and one lock.

        Equivalent to `infer` for each of them, from any thread. `refused` is called without any
        lock for each one that is rejected. Returns False if the requests must be checked one by
        one. Raises `ModelClosed` if the version takes no requests. In both cases none was accepted.
        """
        if not self._takes_coalesced or not self._check.check_coalesced(requests):
            return False
        try:
            with self._lock:
                refusals = self._accept_coalesced(requests)
        finally:
            self._flush()
        for request, error in refusals:
            refused(request, error)
        for request in requests:
            if request.deadline_ns and request.owner is self:
                self._deadlines.watch(request)
        return True

    def _accept_coalesced(
        self, requests: Sequence[InferRequest]
    ) -> list[tuple[InferRequest, Exception]]:
        """Schedule requests under the lock; return the rejected ones with their errors."""
        now = now_ns()
        for request in requests:
            request.queued_ns = now
            if not request.received_ns:
                request.received_ns = now
        cancelled = any([request.cancelled for request in requests])
        if not self._is_closing and not cancelled and self.dispatcher.offer_many(requests):
            self._in_flight += len(requests)
            for request in requests:
                request.owner = self
            self._delivery.register(requests)
            self.dispatcher.announce(len(requests), now)
            return []
        offer, count = self.dispatcher.offer, 0
        refusals: list[tuple[InferRequest, Exception]] = []
        for request in requests:
            try:
                self.accept(request)  # raises ModelClosed for the first request or for none
            except Cancelled as error:
                refusals.append((request, error))
                continue
            try:
                offer(request)
                count += 1
            except Exception as error:
                self.disown(request)
                refusals.append((request, error))
        if count:
            self.dispatcher.announce(count, now)
        return refusals

    def _enqueue(self, request: InferRequest) -> None:
        try:
            self.dispatcher.enqueue(request)
        except BaseException:
            with self._lock:
                self.disown(request)
            raise

    def schedule(self, request: InferRequest) -> None:
        """Pass an accepted request to the scheduler.

        Raises what the scheduler raises; the model then still owns the request.
        """
        try:
            with self._lock if self._uses_instances else nullcontext():
                self.dispatcher.enqueue(request)
        finally:
            self._flush()

    def disown(self, request: InferRequest) -> None:
        """Stop owning a request that was just accepted; called under the lock."""
        request.owner = UNOWNED
        self._in_flight -= 1
        self._delivery.unregister(request)
        if self._in_flight == 0 and self._is_closing:
            self.drained.set()

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Count and send one response per request.

        Responses after a final one are dropped and counted.
        """
        response_ns = now_ns() if self.accounting.response_counters else 0
        if self._cache is not None:
            self._cache.store(requests, responses)
        responses = self._postprocessor.apply(requests, responses)
        with self._lock:
            now = now_ns()
            pairs, final = self.accounting.record_responses(requests, responses, response_ns, now)
            self._in_flight -= final
            if self._in_flight == 0 and self._is_closing:
                self.drained.set()
        self._send(pairs, now)

    def respond_unscheduled(self, request: InferRequest, response: InferResponse) -> None:
        """Count and send the only response of an accepted request that was never scheduled.

        That is a cache hit or an error.
        """
        (response,) = self._postprocessor.apply((request,), (response,))
        accounting = self.accounting
        accounting.set_identity(request, response)
        with self._lock:
            now = now_ns()
            if request.finished:
                accounting.counters.late_responses += 1
                return
            request.finished = True
            for counter in accounting.response_counters:
                counter.responded(request, response, now, now)
            if response.error is not None:
                accounting.counters.failed(response.error.reason, now - request.received_ns)
            self._in_flight -= 1
            if self._in_flight == 0 and self._is_closing:
                self.drained.set()
        self._send([(request, response)], now)

    def _send(self, pairs: Sequence[RequestResponse], now: int) -> None:
        if self._observers:
            notify_observers(self._observers, pairs, now)
        for request, response in pairs:
            if request.trace is not None:
                request.trace.responded(request, response, now)
            if response.final:
                # Break the reference cycle, so that the buffers are freed without a garbage
                # collection.
                request.batch = None
        if self._lock._is_owned():  # type: ignore[attr-defined]
            # The scheduler responded from inside one of its methods.
            self._deferred_responses.extend(pairs)
            return
        self._delivery.deliver(pairs)
        # Notified of the release, the scheduler responded to other requests.
        if self._deferred_responses:
            self._flush()

    def reschedule(self, request: InferRequest) -> None:
        """Return `request` to the scheduler for another execution."""
        with self._lock:
            if not request.finished:
                now = now_ns()
                if request.batch is not None and not request.batch.counted:
                    self.accounting.record_execution(request.batch, now)
                request.queued_ns = now  # the new wait excludes the first wait and the execution
                self.dispatcher.release(request, reschedule=True)
        self._flush()

    def cancel(self, request: InferRequest) -> None:
        """Drop `request` if it waits; notify the runner if it is executing."""
        self.dispatcher.cancel(request)
        if self.runner is not None and request.batch is not None:
            self.runner.cancelled(request)

    def close(self) -> None:
        """Reject new requests, wait for those in flight, and stop the instances."""
        self.stop_accepting()
        if self._cache is not None:
            # Requests in a cache lookup may still have to be scheduled.
            self._cache.wait_for_lookups()
        with self._lock:
            self._scheduler.stop()
            self._scheduler.finish()
            if self._in_flight == 0:
                self.drained.set()
        self._flush()
        # Requests that the scheduler ended may have unblocked waiting ones.
        self.dispatcher.wake()
        self.drained.wait()
        if self.runner is not None:
            self.runner.stop()
        self.context.metrics.close()

    def fail_waiting(self) -> None:
        """Respond to every waiting request with `Unavailable`: the drain timeout has expired."""
        if self._cache is not None:
            self._cache.stop_scheduling()
        self._respond_to_waiting(Unavailable("Exit timeout expired, the request was not run"))

    def _drop(self, error: Exception) -> None:
        self._respond_to_waiting(internal_error(log, f"the scheduler of model {self.name}", error))

    def _respond_to_waiting(self, error: TritonError) -> None:
        with self._lock:
            for request in list(self._scheduler.pending()):
                request.respond(InferResponse.failed(request, error))
                # Prevent its execution; a second response is dropped.
                self._scheduler.cancel(request)
        self._flush()

    def _flush(self) -> None:
        if self._deferred_responses and not self._lock._is_owned():  # type: ignore[attr-defined]
            with self._lock:
                pairs, self._deferred_responses = self._deferred_responses, []
            self._delivery.deliver(pairs)

    def _admit(self, batch: Batch) -> bool:
        return admit_strings(batch, self._check)

    def _fail(self, batches: Sequence[Batch], error: BaseException) -> None:
        if not isinstance(error, TritonError):
            log.error(
                "model %s version %d failed to execute", self.name, self.version, exc_info=error
            )
        failure = backend_error(error)
        for batch in batches:
            for request in batch.requests:
                # Rescheduled requests belong to no batch.
                if not request.finished and request.batch is batch:
                    request.respond(InferResponse.failed(request, failure))
