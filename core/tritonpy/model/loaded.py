"""One loaded version of a model: takes requests, counts them, and sees to it that each is answered exactly once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from tritonpy.api.backend import ModelContext
from tritonpy.api.engine import ModelGauges, ModelStatistics
from tritonpy.api.observer import Observer
from tritonpy.api.scheduler import Scheduler
from tritonpy.clock import now_ns
from tritonpy.config.server.latency_settings import NO_LATENCIES, LatencySettings
from tritonpy.errors import Cancelled, DecoupledRefused, TritonError, Unavailable
from tritonpy.incidents import incident
from tritonpy.model.accounting import Accounting
from tritonpy.model.alike import AlikeRequests
from tritonpy.model.backend_error import backend_error
from tritonpy.model.bystanders import show
from tritonpy.model.cache_key import KeyMaker
from tritonpy.model.caching import ModelCache
from tritonpy.model.closed import ModelClosed
from tritonpy.model.finishing import Finishing
from tritonpy.model.ordering import Answer, AsTheyCome, InArrivalOrder
from tritonpy.model.request_check import RequestCheck
from tritonpy.model.response_cache import ResponseCache
from tritonpy.model.string_admission import admit_strings
from tritonpy.runners.deadlines import Deadlines
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.guards import BatchGuards
from tritonpy.runners.instances import Instances
from tritonpy.runners.rings import Rings
from tritonpy.runners.runner import Runner
from tritonpy.runners.timer import Timer
from tritonpy.types import Batch, InferRequest, InferResponse
from tritonpy.types.request import UNOWNED
from tritonpy_protos.model_config_pb2 import ModelConfig

log = logging.getLogger("tritonpy.model")


class LoadedModel:
    """Admission, scheduler, runner and statistics of one version. It owns its requests (`types.Owner`).

    The order of an answer: transformed (reshape, classification, shared memory), counted under the lock, shown to observers, sent.
    """

    def __init__(
        self,
        context: ModelContext,
        check: RequestCheck,
        labels: Mapping[str, Sequence[str]],
        timer: Timer,
        observers: Sequence[Observer],
        rings: Rings | None = None,
        latencies: LatencySettings = NO_LATENCIES,
    ) -> None:
        self.context, config = context, context.config
        self.name, self.version = context.name, context.version
        self.decoupled = config.model_transaction_policy.decoupled
        self.load_seconds = 0.0
        self.dispatcher = Dispatcher(timer, rings)
        self.dispatcher.flush, self.dispatcher.failed = self._flush, self._drop
        self.accounting = Accounting(context, latencies, self.dispatcher)
        self.guards = BatchGuards(self._admit, self._drop, self._fail)
        self.runner: Runner | None = None
        self.instances: Instances | None = None
        self._check = check
        self.labels = labels
        # An ensemble's, by the name and version that its steps call.
        self.members: Mapping[tuple[str, int], LoadedModel] = {}
        self._request_parameters: frozenset[str] | None = None
        self._finishing = Finishing(check.outputs, labels, config.max_batch_size > 0)
        self._cache: ModelCache | None = None
        self._deadlines = Deadlines(timer)
        self.alike: AlikeRequests | None = None
        self._observers = observers
        self._delivery = InArrivalOrder() if config.dynamic_batching.preserve_ordering else AsTheyCome()
        self._lock = self.dispatcher.lock
        self._outbox: list[Answer] = []
        self._open = 0
        self._closing = False
        self.drained = threading.Event()
        self._scheduler: Scheduler

    def use_cache(self, cache: ResponseCache, identity: bytes) -> None:
        """Keep the answers in `cache`, where `identity` tells this version's from those of all others; before the first request."""
        keys = KeyMaker(identity, [output.name for output in self.config.output])
        self._cache = ModelCache(cache, keys, self, self._lock, self.accounting.counters)
        self.accounting.use_cache(self._cache)

    def attach(self, scheduler: Scheduler) -> None:
        """Take the scheduler; done once, before the first request."""
        self._scheduler = scheduler
        self._uses_instances = scheduler.uses_instances
        if scheduler.uses_instances and self._cache is None and not self.decoupled:
            self.alike = AlikeRequests(self, self._check, self._deadlines)
        self.dispatcher.attach(scheduler)

    @property
    def config(self) -> ModelConfig:
        """The configuration; an in-place update of the instances replaces it."""
        return self.context.config

    @property
    def request_parameters(self) -> frozenset[str] | None:
        """The request parameters that its backend reads, of an ensemble those that its members read; None if they may read any."""
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
        """Requests that wait for an instance."""
        return self.dispatcher.waiting

    @property
    def open(self) -> int:
        """Requests that were taken in and have no final answer yet."""
        return self._open

    @property
    def last_use_ms(self) -> int:
        """When it last executed, in ms since 1970; 0 before that."""
        return self.accounting.counters.last_inference_ms

    def in_use(self) -> bool:
        """Say whether requests are open, or sequences live that wait for their next one; it stays so only under `dispatcher.lock`."""
        with self._lock:
            return self._open > 0 or self._scheduler.is_live()

    def refuse(self) -> None:
        """Take no request any more: each is told to look the version up again."""
        with self._lock:
            self._closing = True

    def statistics(self) -> ModelStatistics:
        """Return everything counted, as of one moment."""
        with self._lock:
            counted = self.accounting.statistics()
        counted.namespace = self.context.namespace
        if self.runner is not None:
            counted.memory_usage = list(self.runner.memory_usage())
        return counted

    def gauges(self) -> ModelGauges:
        """Return what only the metrics show, as of one moment."""
        counters, answers = self.accounting.counters, self.accounting.answers
        with self._lock:
            return ModelGauges(
                failures=dict(counters.failures),
                pending=self.waiting,
                load_seconds=self.load_seconds,
                late_answers=counters.late_answers,
                tags=dict(self.config.metric_tags),
                first_response=answers.first_response(),
                summaries=answers.summaries(),
                shares=answers.shares(self.name, self.version),
                cached=self._cache is not None,
            )

    def alive(self) -> bool:
        """Say from memory whether every instance is there."""
        return self.runner is None or self.runner.alive()

    def is_ready(self) -> bool:
        """Ask every instance whether it can serve; may take seconds."""
        return self.runner is None or self.runner.is_ready()

    def check_caller(self, request: InferRequest) -> None:
        """Raise DecoupledRefused where the caller takes one answer and the model gives any number of them."""
        if self.decoupled and not request.accepts_decoupled:
            raise DecoupledRefused(f"model '{self.name}' answers any number of times, the caller takes one answer")

    def infer(self, request: InferRequest) -> None:
        """Take `request` over. Raises a TritonError, or ModelClosed, and leaves it to the caller."""
        if self.decoupled:
            self.check_caller(request)
        self._check.check(request)
        request.queued_ns = now = now_ns()
        if not request.received_ns:
            request.received_ns = now
        if request.trace is not None:
            request.trace.begin(self.name, self.version, request)
        try:
            if self._cache is None or not self._cache.serve(request):
                with self._lock:
                    self.take_in(request)
                    if self._uses_instances:
                        self._enqueue(request)
                if not self._uses_instances:
                    self._enqueue(request)
        finally:
            if self._outbox:
                self._flush()
        if request.deadline_ns:
            self._deadlines.watch(request)

    def take_in(self, request: InferRequest) -> None:
        """Own `request` until its final answer; called under the lock. Raises ModelClosed, Cancelled."""
        if self._closing:
            raise ModelClosed
        if request.cancelled:
            raise Cancelled("Request cancelled")
        self._open += 1
        request.owner = self
        self._delivery.expect((request,))

    def take_in_alike(self, requests: Sequence[InferRequest]) -> bool:
        """Do the same to requests that are alike, and hand them to the scheduler, if that can be done at once; False: nothing happened."""
        if self._closing or any([request.cancelled for request in requests]):
            return False
        if not self.dispatcher.offer_alike(requests):
            return False
        self._open += len(requests)
        for request in requests:
            request.owner = self
        self._delivery.expect(requests)
        return True

    def _enqueue(self, request: InferRequest) -> None:
        try:
            self.dispatcher.enqueue(request)
        except BaseException:
            with self._lock:
                self.give_back(request)
            raise

    def proceed(self, request: InferRequest) -> None:
        """Hand a request that was taken in to the scheduler. Raises what that raises, and still owns the request."""
        try:
            with self._lock if self._uses_instances else nullcontext():
                self.dispatcher.enqueue(request)
        finally:
            self._flush()

    def give_back(self, request: InferRequest) -> None:
        """Own `request`, which was taken in a moment ago, no more; called under the lock."""
        request.owner = UNOWNED
        self._open -= 1
        self._delivery.forget(request)
        if self._open == 0 and self._closing:
            self.drained.set()

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Count and send one response per request; what comes after a final answer is dropped and counted."""
        handed = now_ns() if self.accounting.each_answer else 0
        if self._cache is not None:
            self._cache.keep(requests, responses)
        responses = self._finishing.apply(requests, responses)
        with self._lock:
            now = now_ns()
            answers, last = self.accounting.answered(requests, responses, handed, now)
            self._open -= last
            if self._open == 0 and self._closing:
                self.drained.set()
        self._send(answers, now)

    def answer_unscheduled(self, request: InferRequest, response: InferResponse) -> None:
        """Count and send the one answer of a request that was taken in and never met the scheduler: a cache hit, or an error."""
        (response,) = self._finishing.apply((request,), (response,))
        accounting = self.accounting
        accounting.name(request, response)
        with self._lock:
            now = now_ns()
            if request.answered:
                accounting.counters.late_answers += 1
                return
            request.answered = True
            for counter in accounting.each_answer:
                counter.answered(request, response, now, now)
            if response.error is not None:
                accounting.counters.failed(response.error.reason, now - request.received_ns)
            self._open -= 1
            if self._open == 0 and self._closing:
                self.drained.set()
        self._send([(request, response)], now)

    def _send(self, answers: Sequence[Answer], now: int) -> None:
        if self._observers:
            show(self._observers, answers, now)
        for request, response in answers:
            if request.trace is not None:
                request.trace.answered(request, response, now)
            if response.final:
                # It names the request too: as a circle they would keep the buffers until the collector comes.
                request.batch = None
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._outbox.extend(answers)  # the scheduler answered from inside one of its methods
            return
        self._delivery.deliver(answers)
        if self._outbox:  # told of the release, the scheduler answered others
            self._flush()

    def reschedule(self, request: InferRequest) -> None:
        """Hand `request` back to the scheduler for another execution."""
        with self._lock:
            if not request.answered:
                now = now_ns()
                if request.batch is not None and not request.batch.counted:
                    self.accounting.executed(request.batch, now)
                request.queued_ns = now  # it waits anew: neither its execution nor its first wait is part of that
                self.dispatcher.left(request, reschedule=True)
        self._flush()

    def cancel(self, request: InferRequest) -> None:
        """Drop `request` if it still waits; a running one sees `request.cancelled`, and its runner is told."""
        self.dispatcher.cancel(request)
        if self.runner is not None and request.batch is not None:
            self.runner.cancelled(request)

    def close(self) -> None:
        """Refuse new requests, wait until the open ones are answered, then end the instances and free what they share."""
        self.refuse()
        if self._cache is not None:
            self._cache.settle()  # what was taken in for a look-up may still have to be scheduled
        with self._lock:
            self._scheduler.stop()
            self._scheduler.finish()
            if self._open == 0:
                self.drained.set()
        self._flush()
        self.dispatcher.wake()  # what it ended may have made room for what waits
        self.drained.wait()
        if self.runner is not None:
            self.runner.stop()
        self.context.metrics.close()

    def give_up(self) -> None:
        """Answer every request that still waits with Unavailable: the time to drain is over."""
        if self._cache is not None:
            self._cache.give_up()
        self._answer_waiting(Unavailable("Exit timeout expired, the request was not run"))

    def _drop(self, error: Exception) -> None:
        self._answer_waiting(incident(log, f"the scheduler of model {self.name}", error))

    def _answer_waiting(self, error: TritonError) -> None:
        with self._lock:
            for request in list(self._scheduler.pending()):
                request.respond(InferResponse.failed(request, error))
                self._scheduler.cancel(request)  # so that nothing runs it; this second answer is dropped
        self._flush()

    def _flush(self) -> None:
        if self._outbox and not self._lock._is_owned():  # type: ignore[attr-defined]
            with self._lock:
                answers, self._outbox = self._outbox, []
            self._delivery.deliver(answers)

    def _admit(self, batch: Batch) -> bool:
        return admit_strings(batch, self._check)

    def _fail(self, batches: Sequence[Batch], error: BaseException) -> None:
        if not isinstance(error, TritonError):
            log.error("model %s version %d failed to execute", self.name, self.version, exc_info=error)
        failure = backend_error(error)
        for batch in batches:
            for request in batch.requests:
                if not request.answered and request.batch is batch:  # what was handed back to the scheduler waits there
                    request.respond(InferResponse.failed(request, failure))
