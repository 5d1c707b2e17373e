"""What an instance runs before it is given to anybody: the samples of the configuration's `model_warmup`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from tritonpy.api.backend import ModelContext
from tritonpy.clock import now_ns
from tritonpy.errors import Internal, InvalidArgument, TritonError, exception_text
from tritonpy.runners.slot import Slot
from tritonpy.types import Batch, CallbackSink, InferRequest, InferResponse, Tensor

_PROGRESS_NS = 10_000_000_000  # between two lines in the log about one warm-up that goes on
_RESCHEDULED = (
    "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, "
    "while the model is not configured to handle such a flag."
)


class WarmupSample(msgspec.Struct, frozen=True):
    """One sample: `inputs` of each of the requests that are executed together, `count` times over."""

    name: str
    count: int
    inputs: Sequence[Mapping[str, Tensor]]


MakeSamples = Callable[[], Sequence[WarmupSample]]


class Trial:
    """One execution of a sample, and who owns its requests (`types.Owner`): nothing is counted and nobody else sees an answer.

    `settled` is called, from any thread, whenever every request of the last `batch` is answered for good or handed back.
    """

    def __init__(self, model: ModelContext, slot: Slot, sample: WarmupSample, settled: Callable[[], None]) -> None:
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
        """Return the batch to be executed now: at first of all requests, then of those that were handed back."""
        requests, self._waiting = self._waiting, []
        if not requests:
            return None
        self._open = len(requests)
        batch = Batch(requests, model=self._model, instance=self._slot, start_ns=now_ns())
        for request in requests:
            request.batch = batch
        return batch

    def fail(self, batch: Batch, error: BaseException) -> None:
        """Answer what `batch` left open with what its execution raised."""
        if not isinstance(error, TritonError):
            self._model.log.error("%s failed to run a warmup sample", self._slot.name, exc_info=error)
        failure = error if isinstance(error, TritonError) else Internal(exception_text(error))
        for request in batch.requests:
            if not request.answered and request.batch is batch:
                request.respond(InferResponse.failed(request, failure))

    def conclude(self) -> None:
        """Raise InvalidArgument, with Triton's text, where any request was answered with an error."""
        if self._errors:
            said = "".join([f"{error}; " for error in self._errors])
            raise InvalidArgument(f"failed to run warmup sample '{self._name}': {said}")

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Take note of errors and of final answers; what the answers hold is not looked at."""
        left = 0
        with self._lock:
            for request, response in zip(requests, responses, strict=True):
                if request.answered:
                    continue
                if response.error is not None:
                    self._errors.append(response.error.message)
                if response.final:
                    request.answered, request.batch = True, None
                    left += 1
        self._leave(left)

    def reschedule(self, request: InferRequest) -> None:
        """Take `request` back for the next `batch`, where the model may hand it back at all."""
        if not self._iterative:
            request.respond(InferResponse.failed(request, Internal(_RESCHEDULED)))
            return
        with self._lock:
            request.batch = None
            self._waiting.append(request)
        self._leave(1)

    def cancel(self, request: InferRequest) -> None:
        """Nothing waits here that could be dropped."""

    def _leave(self, count: int) -> None:
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
                self._model.name, dict(inputs), _NOBODY, self._model.version,
                accepts_decoupled=True, received_ns=now, queued_ns=now, owner=self,
            )
            for inputs in sample.inputs
        ]  # fmt: skip


def trials(
    model: ModelContext, slot: Slot, samples: Sequence[WarmupSample], settled: Callable[[], None]
) -> Iterator[Trial]:
    """Yield every execution in its turn, and log how it goes. Raises what `Trial.conclude` raises of the one before."""
    begin_ns = said_ns = now_ns()
    for sample in samples:
        for iteration in range(1, sample.count + 1):
            what = f"is running warmup sample '{sample.name}' for iteration {iteration}"
            model.log.debug("model '%s' instance %s %s", model.name, slot.name, what)
            now = now_ns()
            if now - said_ns > _PROGRESS_NS:
                said_ns = now
                model.log.info("%s %s of %d, after %.0f s", slot.name, what, sample.count, (now - begin_ns) / 1e9)
            trial = Trial(model, slot, sample, settled)
            yield trial
            trial.conclude()
    if samples:
        model.log.info("%s is warmed up, after %.3g s", slot.name, (now_ns() - begin_ns) / 1e9)


def warm_up(model: ModelContext, slot: Slot, samples: Sequence[WarmupSample], execute: Callable[[Batch], None]) -> None:
    """Run `samples` through `execute` in the calling thread. Raises InvalidArgument with what went wrong."""
    settled = threading.Semaphore(0)
    for trial in trials(model, slot, samples, settled.release):
        while (batch := trial.batch()) is not None:
            try:
                execute(batch)
            except BaseException as error:
                trial.fail(batch, error)
            settled.acquire()


def _unheard(_request: InferRequest, _response: InferResponse) -> None:
    """The owner hears the answers; a sink is asked only whether it has room, and it always has."""


_NOBODY = CallbackSink(_unheard)
