"""Shadow copies of requests, whose responses are compared with those of the clients."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence

from tritonpy import (
    CallbackSink,
    Cancelled,
    Engine,
    InferRequest,
    InferResponse,
    TritonError,
    now_ns,
)
from tritonpy_traffic.background import BackgroundThread
from tritonpy_traffic.comparison import describe_difference
from tritonpy_traffic.latencies import Latencies
from tritonpy_traffic.low_discrepancy import SQUARE_ROOT_OF_3, LowDiscrepancySequence
from tritonpy_traffic.spec import Shadow

log = logging.getLogger("tritonpy.traffic")

MAX_RESPONSES = 64
"""Maximum number of responses per request that are compared.

Requests with more are not compared.
"""
_LOG_INTERVAL_NS = 10_000_000_000

SAME, DIFFERENT, DROPPED, FAILED, UNCOMPARED = (
    "same",
    "different",
    "dropped",
    "failed",
    "uncompared",
)
OUTCOMES = (SAME, DIFFERENT, DROPPED, FAILED, UNCOMPARED)
"""Outcomes of a copy.

Same or different: compared. Dropped: too many copies in flight. Failed: the target rejected it or
returned an error that the client did not get. Uncompared: not comparable.
"""


class ShadowCopy:
    """The copy of one request: the request to the shadow, and the responses to the client."""

    __slots__ = ("began_ns", "input_bytes", "request", "responses", "shadow_traffic")

    def __init__(
        self, shadow_traffic: ShadowTraffic, request: InferRequest, input_bytes: int
    ) -> None:
        self.shadow_traffic = shadow_traffic
        self.request = request
        self.input_bytes = input_bytes
        self.responses: list[InferResponse] = []
        self.began_ns = 0

    def record(self, response: InferResponse) -> None:
        """Record a response to the client. After the final one the copy is sent."""
        if len(self.responses) <= MAX_RESPONSES:
            self.responses.append(response)
        if response.final:
            self.shadow_traffic.send(self)

    def discard(self) -> None:
        """Discard the copy, because no target accepted the request."""
        self.shadow_traffic.finish(self, None)


class ShadowTraffic:
    """The shadow copies of one route. Thread-safe."""

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
        self._spread = LowDiscrepancySequence(SQUARE_ROOT_OF_3)
        self._open = 0
        self._open_bytes = 0
        self._logged_ns = 0
        self._synthetic_parent = InferRequest(
            route, {}, CallbackSink(lambda _request, _response: None)
        )

    def copy(self, request: InferRequest) -> ShadowCopy | None:
        """Return a copy of `request` with the same tensors, or None if it is not selected.

        Call this before the request is sent.
        """
        with self._lock:
            if self._spread.next() >= self.spec.share:
                return None
            if request.sequence is not None or request.uses_regions:
                # A copied sequence would need all of its requests. Clients reuse shared memory
                # after the response, before the copy is sent.
                self.outcomes[UNCOMPARED] += 1
                return None
            nbytes = sum([tensor.nbytes for tensor in request.inputs.values()])
            if self._open >= self.spec.max_open or self._open_bytes + nbytes > self.spec.max_bytes:
                self.outcomes[DROPPED] += 1
                return None
            self._open += 1
            self._open_bytes += nbytes
        return ShadowCopy(self, self._make_request(request), nbytes)

    def _make_request(self, request: InferRequest) -> InferRequest:
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
            parent=self._synthetic_parent,  # not charged to a client's quota
        )

    def send(self, copy: ShadowCopy) -> None:
        """Send the copy in the background. The response to the client was already sent."""
        self._thread.add(lambda: self._send_copy(copy))

    def _send_copy(self, copy: ShadowCopy) -> None:
        if self._is_incomparable(copy.responses):
            self.finish(copy, UNCOMPARED)
            return
        responses: list[InferResponse] = []

        def deliver(_request: InferRequest, response: InferResponse) -> None:
            if len(responses) <= MAX_RESPONSES:
                responses.append(response)
            if response.final:
                elapsed = now_ns() - copy.began_ns
                self._thread.add(lambda: self._compare(copy, responses, elapsed))

        copy.request.sink = CallbackSink(deliver)
        copy.began_ns = copy.request.received_ns = now_ns()
        try:
            self._engine.infer(copy.request)
        except TritonError as error:
            self._fail(copy, f"it rejects copies: {error.message}")
        except Exception as error:
            self._fail(copy, f"{type(error).__name__}: {error}")
            raise

    def _fail(self, copy: ShadowCopy, text: str) -> None:
        self.last_failure = text
        self.finish(copy, FAILED)
        self._log(text)

    @staticmethod
    def _is_incomparable(responses: Sequence[InferResponse]) -> bool:
        return len(responses) > MAX_RESPONSES or any(
            isinstance(response.error, Cancelled) for response in responses
        )

    def _compare(
        self, copy: ShadowCopy, responses: Sequence[InferResponse], elapsed_ns: int
    ) -> None:
        error = _error_of(responses)
        if error is not None and _error_of(copy.responses) is None:
            self._fail(copy, f"it fails: {error.message}")
            return
        try:
            text = describe_difference(
                copy.responses, responses, self.spec.tolerance, self.spec.tolerances
            )
        except Exception:
            self.finish(copy, UNCOMPARED)
            raise
        with self._lock:
            self.latencies.add(elapsed_ns)
        self.finish(copy, DIFFERENT if text else SAME)
        if text:
            self.last_difference = text
            self._log(text)

    def finish(self, copy: ShadowCopy, outcome: str | None) -> None:
        """Record the outcome of a copy, None if it does not count."""
        with self._lock:
            self._open -= 1
            self._open_bytes -= copy.input_bytes
            if outcome is not None:
                self.outcomes[outcome] += 1

    def _log(self, text: str) -> None:
        now = now_ns()
        if now - self._logged_ns >= _LOG_INTERVAL_NS or not self._logged_ns:
            self._logged_ns = now
            counted = ", ".join(
                f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items())
            )
            log.warning("route %s: shadow %s: %s (%s)", self._route, self.spec.label, text, counted)

    def to_json(self) -> dict[str, object]:
        """Return the results as plain JSON."""
        with self._lock:
            return {
                "copies": {outcome: self.outcomes[outcome] for outcome in OUTCOMES},
                "open": self._open,
                "p50_ms": round(self.latencies.quantile(0.5) / 1e6, 3)
                if self.latencies.count
                else None,
                "last_difference": self.last_difference,
                "last_failure": self.last_failure,
            }


def _error_of(responses: Sequence[InferResponse]) -> TritonError | None:
    return next((response.error for response in responses if response.error is not None), None)
