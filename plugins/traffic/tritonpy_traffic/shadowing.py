"""Copies of requests for another target, whose answers are compared with those that clients got."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence

from tritonpy import CallbackSink, Cancelled, Engine, InferRequest, InferResponse, TritonError, now_ns
from tritonpy_traffic.background import BackgroundThread
from tritonpy_traffic.comparing import difference
from tritonpy_traffic.latencies import Latencies
from tritonpy_traffic.spec import Shadow
from tritonpy_traffic.spread import SQUARE_ROOT_OF_3, Spread

log = logging.getLogger("tritonpy.traffic")

MOST_ANSWERS = 64
"""Of a decoupled model's answers so many are kept to be compared; a request with more is not compared."""
_TELL_EVERY_NS = 10_000_000_000

SAME, DIFFERENT, DROPPED, FAILED, UNCOMPARED = "same", "different", "dropped", "failed", "uncompared"
OUTCOMES = (SAME, DIFFERENT, DROPPED, FAILED, UNCOMPARED)
"""What becomes of a copy: compared; not made because too many are open; refused by the target or answered with an error that
the client did not get; or not to be compared at all."""


class Copy:
    """One request that is copied: its twin, and the answers that the client got."""

    __slots__ = ("answers", "began_ns", "kept_bytes", "shadowing", "twin")

    def __init__(self, shadowing: Shadowing, twin: InferRequest, kept_bytes: int) -> None:
        self.shadowing = shadowing
        self.twin = twin
        self.kept_bytes = kept_bytes
        self.answers: list[InferResponse] = []
        self.began_ns = 0

    def keep(self, response: InferResponse) -> None:
        """Keep an answer that goes to the client; after the final one the copy sets off."""
        if len(self.answers) <= MOST_ANSWERS:
            self.answers.append(response)
        if response.final:
            self.shadowing.send(self)

    def forget(self) -> None:
        """Drop it: nobody took the request."""
        self.shadowing.settle(self, None)


class Shadowing:
    """The copies of one route. Any thread may call any method."""

    def __init__(self, route: str, spec: Shadow, engine: Engine, thread: BackgroundThread) -> None:
        self.spec = spec
        self.latencies = Latencies()
        self.outcomes = Counter[str]()
        self.last_difference = ""
        self.last_failure = ""
        self._route = route
        self._engine = engine
        self._thread = thread
        self._lock = threading.Lock()
        self._spread = Spread(SQUARE_ROOT_OF_3)
        self._open = 0
        self._open_bytes = 0
        self._told_ns = 0
        self._nobody = InferRequest(route, {}, CallbackSink(lambda _request, _response: None))

    def copy(self, request: InferRequest) -> Copy | None:
        """Return a copy of `request` if it is to have one; the tensors are the same. Call it before the request is handed over."""
        with self._lock:
            if self._spread.next() >= self.spec.share:
                return None
            if request.sequence is not None or request.uses_regions:
                # A sequence would need every one of its requests, and memory of clients is theirs again once they have their answer.
                self.outcomes[UNCOMPARED] += 1
                return None
            nbytes = sum([tensor.nbytes for tensor in request.inputs.values()])
            if self._open >= self.spec.max_open or self._open_bytes + nbytes > self.spec.max_bytes:
                self.outcomes[DROPPED] += 1
                return None
            self._open += 1
            self._open_bytes += nbytes
        return Copy(self, self._twin(request), nbytes)

    def _twin(self, request: InferRequest) -> InferRequest:
        return InferRequest(
            self.spec.model,
            dict(request.inputs),
            CallbackSink(lambda _request, _response: None),
            self.spec.number,
            request.id,
            request.outputs,
            request.parameters,
            request.priority,
            request.timeout_us,
            accepts_decoupled=True,
            classifies=request.classifies,
            principal=request.principal,
            headers=request.headers,
            parent=self._nobody,  # no client sent it: no quota is charged for it
        )

    def send(self, copy: Copy) -> None:
        """Hand the copy over, soon; its client has its answer."""
        self._thread.add(lambda: self._hand_over(copy))

    def _hand_over(self, copy: Copy) -> None:
        if self._is_pointless(copy.answers):
            self.settle(copy, UNCOMPARED)
            return
        answers: list[InferResponse] = []

        def deliver(_request: InferRequest, response: InferResponse) -> None:
            if len(answers) <= MOST_ANSWERS:
                answers.append(response)
            if response.final:
                elapsed = now_ns() - copy.began_ns
                self._thread.add(lambda: self._compare(copy, answers, elapsed))

        copy.twin.sink = CallbackSink(deliver)
        copy.began_ns = copy.twin.received_ns = now_ns()
        try:
            self._engine.infer(copy.twin)
        except TritonError as error:
            self._fail(copy, f"it refuses copies: {error.message}")
        except Exception as error:
            self._fail(copy, f"{type(error).__name__}: {error}")
            raise

    def _fail(self, copy: Copy, text: str) -> None:
        self.last_failure = text
        self.settle(copy, FAILED)
        self._tell(text)

    @staticmethod
    def _is_pointless(answers: Sequence[InferResponse]) -> bool:
        return len(answers) > MOST_ANSWERS or any(isinstance(answer.error, Cancelled) for answer in answers)

    def _compare(self, copy: Copy, answers: Sequence[InferResponse], elapsed_ns: int) -> None:
        error = _error_of(answers)
        if error is not None and _error_of(copy.answers) is None:
            self._fail(copy, f"it fails: {error.message}")
            return
        try:
            text = difference(copy.answers, answers, self.spec.tolerance, self.spec.tolerances)
        except Exception:
            self.settle(copy, UNCOMPARED)
            raise
        with self._lock:
            self.latencies.add(elapsed_ns)
        self.settle(copy, DIFFERENT if text else SAME)
        if text:
            self.last_difference = text
            self._tell(text)

    def settle(self, copy: Copy, outcome: str | None) -> None:
        """Take note of what became of a copy; None where it does not count."""
        with self._lock:
            self._open -= 1
            self._open_bytes -= copy.kept_bytes
            if outcome is not None:
                self.outcomes[outcome] += 1

    def _tell(self, text: str) -> None:
        now = now_ns()
        if now - self._told_ns >= _TELL_EVERY_NS or not self._told_ns:
            self._told_ns = now
            counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
            log.warning("route %s: shadow %s: %s (%s)", self._route, self.spec.label, text, counted)

    def shown(self) -> dict[str, object]:
        """Return what was found, as plain JSON."""
        with self._lock:
            return {
                "copies": {outcome: self.outcomes[outcome] for outcome in OUTCOMES},
                "open": self._open,
                "p50_ms": round(self.latencies.quantile(0.5) / 1e6, 3) if self.latencies.count else None,
                "last_difference": self.last_difference,
                "last_failure": self.last_failure,
            }


def _error_of(answers: Sequence[InferResponse]) -> TritonError | None:
    return next((answer.error for answer in answers if answer.error is not None), None)
