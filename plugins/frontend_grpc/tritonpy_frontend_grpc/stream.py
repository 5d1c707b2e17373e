"""What one ModelStreamInfer call has open, and in which order its answers leave. Pure; knows no transport.

A model that answers once has its answers sent in the order of the requests; a decoupled one as it produces them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tritonpy import DecoupledRefused, Internal, RequestMemory, Room, TritonError
from tritonpy_frontend_grpc.deadline import DeadlineExceeded, is_late
from tritonpy_frontend_grpc.encode import (
    encode_empty_final,
    encode_failure,
    encode_refusal,
    encode_stream_response,
)

if TYPE_CHECKING:
    from tritonpy import ClientMemory, Engine, InferRequest, InferResponse, StreamSink
    from tritonpy_frontend_grpc.tracing import StreamTrace


class Slot:
    """One request of a stream, from its arrival to its last answer; it is the request's tag."""

    __slots__ = (
        "complete", "empty_final", "id", "in_turn", "model", "nbytes", "replied", "replies", "request", "room", "stream",
        "trace", "version",
    )  # fmt: skip

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.id = self.model = self.version = ""
        self.empty_final = False
        self.nbytes = 0  # of the request, as far as the stream counts it
        self.in_turn = True  # False: decoupled, sends whenever it has something
        self.request: InferRequest | None = None
        self.replied = False  # some answer was no error
        self.replies: list[bytes] = []  # answers that wait for their turn
        self.complete = False
        self.trace: StreamTrace | None = None
        self.room: Room | None = None  # a model that answers once needs none

    def describe(self, request_id: str, model: str, version: str, empty_final: bool) -> None:
        """Keep what answers and errors have to repeat, in the client's own words, and whether it wants a message where the final answer is empty."""
        self.id, self.model, self.version = request_id, model, version
        self.empty_final = empty_final


class Window(NamedTuple):
    """How many answers of one request, and how many bytes of them, may wait to be sent."""

    answers: int
    nbytes: int


_STEP = 64 * 1024  # bytes that are reserved ahead


class Outgoing(NamedTuple):
    """The next thing to send: a message, or the error that ends the whole call."""

    slot: Slot
    item: bytes | TritonError


class Stream:
    """The state of one call; used on the event loop only.

    `window` is how many answers and bytes of one request may wait to be sent, as far as its producer heeds it. With `ends_on_error`
    the first error that a model answers ends the call with a gRPC status. `changed` is called when there may be something to send, or nothing
    is open any more. `deadline_ns` is that of the call, and of its requests: what is cancelled then ends it.
    """

    def __init__(
        self,
        window: Window,
        ends_on_error: bool,
        changed: Callable[[], None],
        deadline_ns: int = 0,
        account: ClientMemory | None = None,
    ) -> None:
        self.unsent_bytes = 0
        self.account = account or RequestMemory().client()
        self._memory = self.account.reservation()
        self._kept = 0  # bytes of open requests and unsent answers
        self._window = window
        self._ends_on_error = ends_on_error
        self._changed = changed
        self._deadline_ns = deadline_ns
        self._open: set[Slot] = set()
        self._turns: deque[Slot] = deque()
        self._outbox: deque[Outgoing] = deque()
        self._abandoned = False

    @property
    def idle(self) -> bool:
        """No request is open and nothing waits to be sent."""
        return not self._open and not self._outbox

    def take(self, slot: Slot, request: InferRequest, engine: Engine, producers: StreamSink) -> None:
        """Hand `request` to the engine; a decoupled model answers to `producers`. Raises the engine's TritonErrors; then the slot must be `refused`."""
        request.tag = slot
        request.deadline_ns = self._deadline_ns
        try:
            engine.infer(request)
        except DecoupledRefused:
            slot.in_turn = False
            slot.room = Room(*self._window)
            request.sink = producers
            request.accepts_decoupled = True
            engine.infer(request)
        slot.request = request
        self._open.add(slot)
        if slot.in_turn:
            self._turns.append(slot)

    def reserve(self, slot: Slot, nbytes: int) -> None:
        """Reserve memory for a request until its last answer is there. Raises RequestMemoryFull."""
        if not self._keep(nbytes):
            raise self.account.memory.refusal(nbytes)
        slot.nbytes = nbytes

    def _keep(self, nbytes: int) -> bool:
        """Count bytes that are kept; return False where there is no room for them. Few are not reserved, others in steps."""
        kept = self._kept + nbytes
        memory = self._memory
        if kept > max(memory.nbytes, RequestMemory.UNCOUNTED) and not (memory.grow(kept + _STEP) or memory.grow(kept)):
            return False
        self._kept = kept
        return True

    def _drop(self, nbytes: int) -> None:
        self._kept -= nbytes
        if self._memory.nbytes > self._kept + 2 * _STEP:
            self._memory.shrink(self._kept + _STEP if self._kept > RequestMemory.UNCOUNTED else 0)

    def refused(self, slot: Slot, error: TritonError) -> None:
        """Answer a request that the engine did not take. Like Triton's streams, none ends with that: its model has seen nothing of it."""
        self._drop(slot.nbytes)
        if self._abandoned:
            return
        slot.room = None  # this answer never went through it
        if slot.in_turn:
            self._turns.append(slot)
        self._answer(slot, encode_refusal(error.message, slot.id), True)

    def answered(self, slot: Slot, response: InferResponse) -> None:
        """Take an answer, the final one or not. Never raises."""
        request, error = slot.request, response.error
        late = error is not None and request is not None and is_late(request, error)
        if response.final:
            self._open.discard(slot)
            self._drop(slot.nbytes)
            slot.request = None  # it names the slot: undone here, its buffers need not wait for the collector
        if self._abandoned:
            if slot.trace is not None:
                slot.trace.answered(sends=False, final=response.final)
            return
        try:
            item = DeadlineExceeded() if late else self._item(slot, response)
        except Exception as unsendable:
            failure = Internal(f"the response can not be sent: {unsendable}")
            item = failure if self._ends_on_error else self._failure(slot, failure, response.final)
        self._answer(slot, item, response.final)

    def first(self) -> Outgoing | None:
        """Return what is to be sent next, and leave it there; None if there is nothing now."""
        return self._outbox[0] if self._outbox else None

    def next(self) -> Outgoing | None:
        """Take out what is to be sent next, None if there is nothing now."""
        return self._outbox.popleft() if self._outbox else None

    def sent(self, outgoing: Outgoing) -> None:
        """Take note that a message has left."""
        if outgoing.slot.room is not None:
            outgoing.slot.room.take()
        if isinstance(outgoing.item, bytes):
            self.unsent_bytes -= len(outgoing.item)
            self._drop(len(outgoing.item))

    def abandon(self) -> None:
        """Cancel what is open: nobody takes the answers any more."""
        self._abandoned = True
        self._changed = _nothing  # it refers to the call, which refers to this
        for slot in list(self._open):
            if slot.request is not None:
                slot.request.cancel()
            if slot.room is not None:
                slot.room.abandon()
        for slot in {*self._open, *self._turns, *(outgoing.slot for outgoing in self._outbox)}:
            if slot.trace is not None:
                slot.trace.abandon()
        self._turns.clear()  # a slot refers to its stream
        self._outbox.clear()

    def _item(self, slot: Slot, response: InferResponse) -> bytes | TritonError | None:
        if response.error is not None:
            if response.refused:
                return encode_refusal(response.error.message, slot.id)
            if slot.in_turn and slot.replied:
                # A model that answers once tried to answer again. As in Triton the client has its answer, and the log the error.
                return self._empty_final(slot)
            return response.error if self._ends_on_error else self._failure(slot, response.error, response.final)
        if not response.empty:
            slot.replied = True
            return encode_stream_response(response)
        return self._empty_final(slot)

    def _empty_final(self, slot: Slot) -> bytes | None:
        return encode_empty_final(slot.id, slot.model, slot.version) if slot.empty_final else None

    def _failure(self, slot: Slot, error: TritonError, final: bool) -> bytes:
        return encode_failure(error.message, final, slot.id, slot.model, slot.version)

    def _answer(self, slot: Slot, item: bytes | TritonError | None, final: bool) -> None:
        if isinstance(item, bytes) and not self._keep(len(item)):
            item = self._failure(slot, self.account.memory.refusal(len(item)), final)
            self._kept += len(item)
        if isinstance(item, TritonError):
            self._outbox.append(Outgoing(slot, item))  # it waits for no turn: the call ends here
        elif item is None:
            if slot.room is not None:
                slot.room.take()
        else:
            self.unsent_bytes += len(item)
            if slot.in_turn:
                slot.replies.append(item)
            else:
                self._outbox.append(Outgoing(slot, item))
        slot.complete = final
        if slot.trace is not None:
            slot.trace.answered(sends=isinstance(item, bytes), final=final)
        if slot.in_turn:
            self._advance()
        self._changed()

    def _advance(self) -> None:
        turns = self._turns
        while turns and turns[0].complete:
            slot = turns.popleft()
            self._outbox += [Outgoing(slot, reply) for reply in slot.replies]


def _nothing() -> None:
    """No sender is left."""
