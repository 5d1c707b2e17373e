"""State of one ModelStreamInfer call, and the order of its responses. Independent of the transport.

Responses of models that are not decoupled are sent in the order of the requests. Responses of
decoupled models are sent as they are produced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tritonpy import DecoupledRefused, Internal, TritonError
from tritonpy.frontend import FlowControl, RequestMemory
from tritonpy_frontend_grpc.deadline import DeadlineExceeded, is_late
from tritonpy_frontend_grpc.encode import (
    encode_empty_final,
    encode_failure,
    encode_refusal,
    encode_stream_response,
)

if TYPE_CHECKING:
    from tritonpy import Engine, InferRequest, InferResponse
    from tritonpy.frontend import ClientMemory, StreamSink
    from tritonpy_frontend_grpc.tracing import StreamTrace


class StreamEntry:
    """One request of a stream, until its last response. It is the tag of the request."""

    __slots__ = (
        "complete",
        "empty_final",
        "flow_control",
        "has_response",
        "id",
        "is_ordered",
        "messages",
        "model",
        "nbytes",
        "request",
        "stream",
        "trace",
        "version",
    )  # fmt: skip

    def __init__(self, stream: InferStream) -> None:
        self.stream = stream
        self.id = self.model = self.version = ""
        self.empty_final = False
        self.nbytes = 0  # size of the request in the memory budget
        self.is_ordered = True  # False for decoupled models, which send at any time
        self.request: InferRequest | None = None
        self.has_response = False  # a response without error was added
        self.messages: list[bytes] = []  # encoded responses that wait for earlier requests
        self.complete = False
        self.trace: StreamTrace | None = None
        self.flow_control: FlowControl | None = None  # set for decoupled models only

    def describe(self, request_id: str, model: str, version: str, empty_final: bool) -> None:
        """Set the fields that responses repeat, and whether an empty final response is sent."""
        self.id, self.model, self.version = request_id, model, version
        self.empty_final = empty_final


class ResponseWindow(NamedTuple):
    """Limits on the number and bytes of unsent responses of one request."""

    responses: int
    nbytes: int


_STEP = 64 * 1024  # bytes by which reservations grow


class OutgoingMessage(NamedTuple):
    """A message to send, or the error that ends the call."""

    entry: StreamEntry
    item: bytes | TritonError


class InferStream:
    """The state of one call. Used on the event loop only.

    `window` limits the unsent responses of one request, if its producer observes flow control. With
    `ends_on_error`, the first error of a model ends the call with a gRPC status. `changed` is
    called when there may be something to send or the stream has become idle. `deadline_ns` applies
    to the call and its requests; a request cancelled at the deadline ends the call.
    """

    def __init__(
        self,
        window: ResponseWindow,
        ends_on_error: bool,
        changed: Callable[[], None],
        deadline_ns: int = 0,
        account: ClientMemory | None = None,
    ) -> None:
        self.unsent_bytes = 0
        self.account = account or RequestMemory().client()
        self._memory = self.account.reservation()
        self._kept = 0  # bytes of open requests and unsent responses
        self._window = window
        self._ends_on_error = ends_on_error
        self._changed = changed
        self._deadline_ns = deadline_ns
        self._open: set[StreamEntry] = set()
        self._ordered_entries: deque[StreamEntry] = deque()
        self._outgoing: deque[OutgoingMessage] = deque()
        self._abandoned = False

    @property
    def idle(self) -> bool:
        """Whether no request is in flight and nothing waits to be sent."""
        return not self._open and not self._outgoing

    def take(
        self, entry: StreamEntry, request: InferRequest, engine: Engine, producers: StreamSink
    ) -> None:
        """Pass `request` to the engine. A decoupled model sends its responses to `producers`.

        Raises the engine's TritonErrors; the caller must then call `refuse`.
        """
        request.tag = entry
        request.deadline_ns = self._deadline_ns
        try:
            engine.infer(request)
        except DecoupledRefused:
            entry.is_ordered = False
            entry.flow_control = FlowControl(*self._window)
            request.sink = producers
            request.accepts_decoupled = True
            engine.infer(request)
        entry.request = request
        self._open.add(entry)
        if entry.is_ordered:
            self._ordered_entries.append(entry)

    def reserve(self, entry: StreamEntry, nbytes: int) -> None:
        """Reserve memory for a request until its last response. Raises RequestMemoryFull."""
        if not self._keep(nbytes):
            raise self.account.memory.refusal(nbytes)
        entry.nbytes = nbytes

    def _keep(self, nbytes: int) -> bool:
        """Count retained bytes; return False if the request memory is full.

        Small amounts are not reserved; larger ones are reserved in steps.
        """
        kept = self._kept + nbytes
        memory = self._memory
        if kept > max(memory.nbytes, RequestMemory.UNCOUNTED) and not (
            memory.grow(kept + _STEP) or memory.grow(kept)
        ):
            return False
        self._kept = kept
        return True

    def _drop(self, nbytes: int) -> None:
        self._kept -= nbytes
        if self._memory.nbytes > self._kept + 2 * _STEP:
            self._memory.shrink(self._kept + _STEP if self._kept > RequestMemory.UNCOUNTED else 0)

    def refuse(self, entry: StreamEntry, error: TritonError) -> None:
        """Send the error for a request that the engine refused.

        As in Triton, the stream does not end.
        """
        self._drop(entry.nbytes)
        if self._abandoned:
            return
        entry.flow_control = None  # flow control does not count this response
        if entry.is_ordered:
            self._ordered_entries.append(entry)
        self._add(entry, encode_refusal(error.message, entry.id), True)

    def add_response(self, entry: StreamEntry, response: InferResponse) -> None:
        """Add a response, final or not. Never raises."""
        request, error = entry.request, response.error
        late = error is not None and request is not None and is_late(request, error)
        if response.final:
            self._open.discard(entry)
            self._drop(entry.nbytes)
            # Breaks a reference cycle, so that buffers do not wait for the garbage collector.
            entry.request = None
        if self._abandoned:
            if entry.trace is not None:
                entry.trace.record_response(sends=False, final=response.final)
            return
        try:
            item = DeadlineExceeded() if late else self._item(entry, response)
        except Exception as unsendable:
            failure = Internal(f"the response can not be sent: {unsendable}")
            item = failure if self._ends_on_error else self._failure(entry, failure, response.final)
        self._add(entry, item, response.final)

    def first(self) -> OutgoingMessage | None:
        """Return the next message to send without removing it, or None."""
        return self._outgoing[0] if self._outgoing else None

    def next(self) -> OutgoingMessage | None:
        """Remove and return the next message to send, or None."""
        return self._outgoing.popleft() if self._outgoing else None

    def sent(self, outgoing: OutgoingMessage) -> None:
        """Record that a message was sent."""
        if outgoing.entry.flow_control is not None:
            outgoing.entry.flow_control.take()
        if isinstance(outgoing.item, bytes):
            self.unsent_bytes -= len(outgoing.item)
            self._drop(len(outgoing.item))

    def abandon(self) -> None:
        """Cancel the requests in flight and discard their responses."""
        self._abandoned = True
        self._changed = _nothing  # breaks a reference cycle with the call
        for entry in list(self._open):
            if entry.request is not None:
                entry.request.cancel()
            if entry.flow_control is not None:
                entry.flow_control.abandon()
        for entry in {
            *self._open,
            *self._ordered_entries,
            *(outgoing.entry for outgoing in self._outgoing),
        }:
            if entry.trace is not None:
                entry.trace.abandon()
        self._ordered_entries.clear()  # entries refer to their stream
        self._outgoing.clear()

    def _item(self, entry: StreamEntry, response: InferResponse) -> bytes | TritonError | None:
        if response.error is not None:
            if response.refused:
                return encode_refusal(response.error.message, entry.id)
            if entry.is_ordered and entry.has_response:
                # A model that is not decoupled sent a second response. As in Triton, only the log
                # has the error.
                return self._empty_final(entry)
            return (
                response.error
                if self._ends_on_error
                else self._failure(entry, response.error, response.final)
            )
        if not response.empty:
            entry.has_response = True
            return encode_stream_response(response)
        return self._empty_final(entry)

    def _empty_final(self, entry: StreamEntry) -> bytes | None:
        return (
            encode_empty_final(entry.id, entry.model, entry.version) if entry.empty_final else None
        )

    def _failure(self, entry: StreamEntry, error: TritonError, final: bool) -> bytes:
        return encode_failure(error.message, final, entry.id, entry.model, entry.version)

    def _add(self, entry: StreamEntry, item: bytes | TritonError | None, final: bool) -> None:
        if isinstance(item, bytes) and not self._keep(len(item)):
            item = self._failure(entry, self.account.memory.refusal(len(item)), final)
            self._kept += len(item)
        if isinstance(item, TritonError):
            self._outgoing.append(OutgoingMessage(entry, item))  # not ordered: it ends the call
        elif item is None:
            if entry.flow_control is not None:
                entry.flow_control.take()
        else:
            self.unsent_bytes += len(item)
            if entry.is_ordered:
                entry.messages.append(item)
            else:
                self._outgoing.append(OutgoingMessage(entry, item))
        entry.complete = final
        if entry.trace is not None:
            entry.trace.record_response(sends=isinstance(item, bytes), final=final)
        if entry.is_ordered:
            self._advance()
        self._changed()

    def _advance(self) -> None:
        turns = self._ordered_entries
        while turns and turns[0].complete:
            entry = turns.popleft()
            self._outgoing += [OutgoingMessage(entry, reply) for reply in entry.messages]


def _nothing() -> None:
    """Do nothing; replaces `changed` after the call has ended."""
