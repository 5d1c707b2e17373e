"""The running inference requests of one API call: one request per choice."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from tritonpy import Engine, InferRequest, InferResponse, now_ns
from tritonpy.frontend import FlowControl
from tritonpy.tracing import Trace, Tracer
from tritonpy_frontend_openai.errors import api_error
from tritonpy_frontend_openai.text_contract import Piece, read_piece


class _Choice:
    """The tag of the request for one choice."""

    __slots__ = ("complete", "flow_control", "generation", "index", "trace")

    def __init__(self, index: int, flow_control: FlowControl, generation: ChoiceResponses) -> None:
        self.trace: Trace | None = None
        self.index = index
        self.flow_control = flow_control
        self.generation = generation
        self.complete = False


class ChoicePiece:
    """A piece of one choice. With `final` the choice is complete."""

    __slots__ = ("final", "index", "piece")

    def __init__(self, index: int, piece: Piece, final: bool) -> None:
        self.index = index
        self.piece = piece
        self.final = final


class ChoiceResponses:
    """Starts requests and collects their responses, in the order of their arrival.

    `make_flow_control` bounds the responses of one choice that wait for the client. `operation` is
    the name of the call in traces. Used on the event loop only.
    """

    def __init__(
        self,
        engine: Engine,
        tracer: Tracer,
        make_flow_control: Callable[[], FlowControl],
        operation: str = "",
    ) -> None:
        self._engine = engine
        self._operation = operation
        self._tracer = tracer
        self._make_flow_control = make_flow_control
        self._requests: list[InferRequest] = []
        self._waiting: deque[tuple[_Choice, InferResponse]] = deque()
        self._taken: list[_Choice] = []
        self._changed = asyncio.Event()
        self._open = 0
        self._closed = False

    def start(self, requests: Sequence[InferRequest], headers: Mapping[str, str]) -> None:
        """Start all requests. Raises the error of the first refused one and cancels the others."""
        try:
            for index, request in enumerate(requests):
                request.tag = _Choice(index, self._make_flow_control(), self)
                request.received_ns = now_ns()
                if self._tracer.active:
                    known = {
                        name: headers[name] for name in self._tracer.headers if name in headers
                    }
                    request.trace = request.tag.trace = self._tracer.sample(
                        request.model_name, known
                    )
                    if request.trace is not None and self._operation:
                        request.trace.attributes |= {
                            "gen_ai.operation.name": self._operation,
                            "gen_ai.provider.name": "tritonpy",
                            "gen_ai.request.model": request.model_name,
                            "gen_ai.response.id": request.id,
                        }
                self._requests.append(request)
                self._engine.infer(request)
                self._open += 1
        except BaseException:
            self._requests[-1].tag.complete = True
            self.close()
            raise

    @property
    def is_closed(self) -> bool:
        """Whether the requests were cancelled or dropped."""
        return self._closed

    async def next(self, timeout_s: float | None = None) -> list[ChoicePiece]:
        """Return the pieces that have arrived, at least one; an empty list at the end.

        The previous pieces count as delivered. Raises ApiError if a request failed, and
        TimeoutError if nothing arrives within `timeout_s` seconds.
        """
        for choice in self._taken:
            choice.flow_control.take()
        self._taken.clear()
        while not self._waiting:
            if not self._open or self._closed:
                return []
            self._changed.clear()
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        return self._take()

    def cancel(self) -> None:
        """Cancel all requests, because the client has left or needs no more."""
        self.close()
        self._changed.set()

    def close(self) -> None:
        """Cancel the requests that still run, drop their responses, and end the traces."""
        self._closed = True
        for request in self._requests:
            if not request.tag.complete:
                # First, so that a producer that `abandon` wakes up sees the cancellation.
                request.cancel()
            request.tag.flow_control.abandon()
            if request.trace is not None:
                request.trace.end()
                request.trace = None
        # A request refers to its generation: without this, each call would leave a cycle.
        self._requests.clear()
        self._waiting.clear()

    def put(self, choice: _Choice, response: InferResponse) -> None:
        """Add a response."""
        if response.final:
            choice.complete = True
            self._open -= 1
        if not self._closed:
            self._waiting.append((choice, response))
        self._changed.set()

    def _take(self) -> list[ChoicePiece]:
        pieces: list[ChoicePiece] = []
        while self._waiting:
            choice, response = self._waiting[0]
            if response.error is not None:
                if pieces:
                    break  # the error is for the next call: what came before is delivered
                self.close()
                raise api_error(response.error)
            self._waiting.popleft()
            self._taken.append(choice)
            piece = read_piece(response)
            if choice.trace is not None:
                _record(choice.trace, piece)
            pieces.append(ChoicePiece(choice.index, piece, response.final))
        return pieces


def _record(trace: Trace, piece: Piece) -> None:
    """Record tokens and the end of a choice, as OpenTelemetry's conventions for generative AI."""
    attributes = trace.attributes
    if piece.text and "FIRST_TOKEN" not in {stamp.name for stamp in trace.stamps()}:
        trace.stamp("FIRST_TOKEN")
    if piece.prompt_tokens is not None:
        attributes["gen_ai.usage.input_tokens"] = piece.prompt_tokens
    if piece.completion_tokens is not None:
        before = attributes.get("gen_ai.usage.output_tokens", 0)
        assert isinstance(before, int)  # noqa: S101 - written here
        attributes["gen_ai.usage.output_tokens"] = before + piece.completion_tokens
    if piece.finish_reason is not None:
        attributes["gen_ai.response.finish_reasons"] = [piece.finish_reason]


def deliver(request: InferRequest, response: InferResponse) -> None:
    """Deliver a response to the generation of its request."""
    request.tag.generation.put(request.tag, response)
