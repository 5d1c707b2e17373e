"""A model's requests to other models that are in flight."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from .api.constants import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
)
from .api.errors import ErrorCode, TritonModelException
from .api.outgoing_tensor import outgoing_tensor
from .api.response import InferenceResponse
from .api.tensor import Tensor
from .call_responses import failed
from .context import blocks_loop, calling_execution
from .first_response import FirstResponse
from .ipc import Frame, Kind
from .ipc.channel import Channel, ChannelClosed
from .ipc.credit_counter import CreditCounter
from .ipc.waiter import Waiter

if TYPE_CHECKING:
    from .api.call import CallSpec

_FINAL, _EMPTY = 1, 2  # flags of a response
_C = TypeVar("_C", bound="Call")


class Call:
    """The responses to one request, as a blocking iterator in their order.

    One thread at a time may use it. The server throttles a model that responds faster than its
    responses are taken. Responses of a call that was dropped are discarded.
    """

    def __init__(self, number: int, calls: Calls, decoupled: bool) -> None:
        self.number = number
        self.decoupled = decoupled
        self.started = False  # a response has arrived
        self.finished = False
        self._calls = calls
        self._waiter = Waiter()
        self._responses: deque[tuple[InferenceResponse, int]] = deque()
        self._taken = CreditCounter()

    def __iter__(self) -> Call:
        return self

    def __next__(self) -> InferenceResponse:
        """Wait for the next response.

        The last response of a stream may have no outputs.
        """
        if not self.started:
            self._calls.announce_wait(self)
        self._calls.channel.wait(self._waiter, self._has_progress)
        if not self._responses:
            raise StopIteration
        response, nbytes = self._responses.popleft()
        credit = self._taken.add(nbytes)
        if credit and not self.finished:
            self._calls.notify(Kind.CALL_CONSUMED, self.number, credit)
        return response

    def __del__(self) -> None:
        if self.decoupled and not self.finished:
            self._calls.notify(Kind.CALL_ABANDONED, self.number)

    def cancel(self) -> None:
        """Ask the server for an early end.

        Responses still arrive; the last one reports the cancellation.
        """
        if not self.finished:
            self._calls.channel.send(Kind.CALL_CANCEL, [self.number])

    def add_response(self, response: InferenceResponse, nbytes: int, final: bool) -> None:
        """Add a response of `nbytes` bytes. Any thread may call this."""
        self._responses.append((response, nbytes))
        self.started = True
        self.finished = final
        self._waiter.wake()

    def _has_progress(self) -> bool:
        return bool(self._responses) or self.finished


class AsyncCall(Call):
    """A call whose first response is awaited on an event loop."""

    def __init__(self, number: int, calls: Calls, decoupled: bool, loop: AbstractEventLoop) -> None:
        super().__init__(number, calls, decoupled)
        self.first = FirstResponse(loop, self.cancel)

    def add_response(self, response: InferenceResponse, nbytes: int, final: bool) -> None:
        super().add_response(response, nbytes, final)
        self.first.set_arrived()


class Calls:
    """The calls of this process to other models."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._numbers = count(1)
        self._calls: WeakValueDictionary[int, Call] = WeakValueDictionary()
        # What an event loop waits for: a thread must read the socket meanwhile.
        self.awaited: set[object] = set()
        channel.on(Kind.CALL_RESPONSE, self._on_response)

    def start(self, spec: CallSpec) -> Call:
        """Send the request.

        If it cannot be sent, the error becomes its only response. Raises `ChannelClosed`.
        """
        return self._send(spec, Call(next(self._numbers), self, spec.decoupled))

    def start_on(self, loop: AbstractEventLoop, spec: CallSpec) -> AsyncCall:
        """Send the request. Its first response is awaited on `loop`. Raises `ChannelClosed`."""
        call = AsyncCall(next(self._numbers), self, spec.decoupled, loop)
        self.awaited.add(call)
        self._send(spec, call)
        self.announce_wait(call)
        return call

    def announce_wait(self, call: Call) -> None:
        """Announce that a thread waits for `call`'s first response and reads no other stream."""
        if call.decoupled and any(
            other is not call and other.decoupled and not other.finished
            for other in list(self._calls.values())
        ):
            self.notify(Kind.CALL_AWAITED, call.number)

    def notify(self, kind: int, *words: int) -> None:
        """Send a notification about a call, also in a destructor.

        Ignored in processes that the model started.
        """
        with suppress(ChannelClosed):
            self.channel.send(kind, words)

    def _send(self, spec: CallSpec, call: _C) -> _C:
        self._calls[call.number] = call
        execution, request = calling_execution()
        if spec.trace is not None:
            request = spec.trace + 1
        try:
            self.channel.send(
                Kind.CALL,
                [call.number, execution, request],
                [[outgoing_tensor(tensor) for tensor in spec.inputs]],
                [spec.requested_output_names or None],
                _extras(spec, stops=not isinstance(call, AsyncCall) and blocks_loop()),
            )
        except (OSError, MemoryError, TritonModelException) as error:
            self._add_response(call, failed(str(error) or type(error).__name__), 0, final=True)
        return call

    def _on_response(self, frame: Frame) -> None:
        number, flags = frame.words[:2]
        rows, _ = self.channel.rows(frame, 2, Tensor.received)
        call = self._calls.get(number)
        if call is None:
            return
        extras = frame.extras
        error = extras.get("error")
        if error is not None:
            response = failed(error[1], ErrorCode(error[0]))
        else:
            parameters = None if flags & _EMPTY else extras.get("parameters", {})
            response = InferenceResponse.received(tuple(rows[0]) if rows else (), None, parameters)
        nbytes = sum([tensor._data.nbytes for tensor in rows[0]]) if rows else 0
        self._add_response(call, response, nbytes, bool(flags & _FINAL))

    def _add_response(
        self, call: Call, response: InferenceResponse, nbytes: int, final: bool
    ) -> None:
        call.add_response(response, nbytes, final)
        if isinstance(call, AsyncCall):
            self.awaited.discard(call)


def _extras(spec: CallSpec, stops: bool) -> dict[str, Any]:
    extras: dict[str, Any] = {
        "model": spec.model_name,
        "version": spec.model_version,
        "decoupled": spec.decoupled,
    }
    if stops:
        extras["blocks_loop"] = True
    if spec.request_id:
        extras["id"] = spec.request_id
    if spec.parameters:
        extras["parameters"] = dict(spec.parameters)
    if spec.correlation_id or spec.flags:
        extras["sequence"] = [
            spec.correlation_id,
            bool(spec.flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START),
            bool(spec.flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END),
        ]
    if spec.timeout:
        extras["timeout_us"] = spec.timeout
    if spec.trace is not None:
        extras["trace"] = True
    return extras
