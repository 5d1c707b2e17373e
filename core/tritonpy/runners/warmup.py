"""Warm-up of instances with the samples of `model_warmup` in the configuration."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from tritonpy.api.contexts import ModelContext
from tritonpy.runners.slot import Slot
from tritonpy_types import Batch, CallbackSink, InferRequest, InferResponse, Tensor
from tritonpy_types.clock import now_ns
from tritonpy_types.errors import Internal, InvalidArgument, TritonError, exception_text

_PROGRESS_NS = 10_000_000_000  # between two log lines about one warm-up
_RESCHEDULED = (
    "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, "
    "while the model is not configured to handle such a flag."
)


class WarmupSample(msgspec.Struct, frozen=True):
    """A warm-up sample: `inputs` of the requests of a batch that is executed `count` times."""

    name: str
    count: int
    inputs: Sequence[Mapping[str, Tensor]]


MakeSamples = Callable[[], Sequence[WarmupSample]]


class WarmupExecution:
    """One execution of a sample, and the owner of its requests (`types.Owner`).

    The requests are not counted and their responses not delivered. `settled` is called, from any
    thread, when all requests of the last `batch` are finished or rescheduled.
    """

    def __init__(
        self, model: ModelContext, slot: Slot, sample: WarmupSample, settled: Callable[[], None]
    ) -> None:
        self._model = model
        self._slot = slot
        self._name = sample.name
        self._settled = settled
        self._lock = threading.Lock()
        self._open = 0
        self._errors: list[str] = []
        self._waiting = self._requests(sample)
        self._iterative = model.config.sequence_batching.iterative_sequence

    def batch(self) -> Batch | None:
        """Return the next batch: first all requests, then those that were rescheduled, or None."""
        requests, self._waiting = self._waiting, []
        if not requests:
            return None
        self._open = len(requests)
        batch = Batch(requests, model=self._model, instance=self._slot, start_ns=now_ns())
        for request in requests:
            request.batch = batch
        return batch

    def fail(self, batch: Batch, error: BaseException) -> None:
        """Fail the unfinished requests of `batch` with the error of the execution."""
        if not isinstance(error, TritonError):
            self._model.log.error(
                "%s failed to run a warmup sample", self._slot.name, exc_info=error
            )
        failure = error if isinstance(error, TritonError) else Internal(exception_text(error))
        for request in batch.requests:
            if not request.finished and request.batch is batch:
                request.respond(InferResponse.failed(request, failure))

    def raise_errors(self) -> None:
        """Raise `InvalidArgument` with Triton's text if any request failed."""
        if self._errors:
            errors = "".join([f"{error}; " for error in self._errors])
            raise InvalidArgument(f"failed to run warmup sample '{self._name}': {errors}")

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Record errors and final responses; outputs are ignored."""
        left = 0
        with self._lock:
            for request, response in zip(requests, responses, strict=True):
                if request.finished:
                    continue
                if response.error is not None:
                    self._errors.append(response.error.message)
                if response.final:
                    request.finished, request.batch = True, None
                    left += 1
        self._count_finished(left)

    def reschedule(self, request: InferRequest) -> None:
        """Return `request` to the next `batch`, or fail it if the model may not reschedule."""
        if not self._iterative:
            request.respond(InferResponse.failed(request, Internal(_RESCHEDULED)))
            return
        with self._lock:
            request.batch = None
            self._waiting.append(request)
        self._count_finished(1)

    def cancel(self, request: InferRequest) -> None:
        """Do nothing: no request waits in a queue here."""

    def _count_finished(self, count: int) -> None:
        with self._lock:
            self._open -= count
            settled = count > 0 and self._open == 0
        if settled:
            self._settled()

    def _requests(self, sample: WarmupSample) -> list[InferRequest]:
        rows, most = len(sample.inputs), self._model.config.max_batch_size
        if rows > max(1, most):
            text = f"batch size {rows} for '{self._slot.name}', max allowed is {most}"
            self._errors.extend([text] * rows)
            return []
        now = now_ns()
        return [
            InferRequest(
                self._model.name, dict(inputs), _NULL_SINK, self._model.version,
                accepts_decoupled=True, received_ns=now, queued_ns=now, owner=self,
            )
            for inputs in sample.inputs
        ]  # fmt: skip


def warmup_executions(
    model: ModelContext, slot: Slot, samples: Sequence[WarmupSample], settled: Callable[[], None]
) -> Iterator[WarmupExecution]:
    """Yield all executions in order and log their progress.

    Raises the error of `WarmupExecution.raise_errors` for the previous execution.
    """
    begin_ns = logged_ns = now_ns()
    for sample in samples:
        for iteration in range(1, sample.count + 1):
            what = f"is running warmup sample '{sample.name}' for iteration {iteration}"
            model.log.debug("model '%s' instance %s %s", model.name, slot.name, what)
            now = now_ns()
            if now - logged_ns > _PROGRESS_NS:
                logged_ns = now
                model.log.info(
                    "%s %s of %d, after %.0f s",
                    slot.name,
                    what,
                    sample.count,
                    (now - begin_ns) / 1e9,
                )
            execution = WarmupExecution(model, slot, sample, settled)
            yield execution
            execution.raise_errors()
    if samples:
        model.log.info("%s is warmed up, after %.3g s", slot.name, (now_ns() - begin_ns) / 1e9)


def warm_up(
    model: ModelContext,
    slot: Slot,
    samples: Sequence[WarmupSample],
    execute: Callable[[Batch], None],
) -> None:
    """Run `samples` with `execute` in this thread. Raises `InvalidArgument` on failure."""
    settled = threading.Semaphore(0)
    for execution in warmup_executions(model, slot, samples, settled.release):
        while (batch := execution.batch()) is not None:
            try:
                execute(batch)
            except BaseException as error:
                execution.fail(batch, error)
            settled.acquire()


def _ignore(_request: InferRequest, _response: InferResponse) -> None:
    """Do nothing: the owner receives the responses, and this sink is always ready."""


_NULL_SINK = CallbackSink(_ignore)
