"""Requests to other models that are on their way."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from .api.constants import TRITONSERVER_REQUEST_FLAG_SEQUENCE_END, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
from .api.errors import ErrorCode, TritonModelException
from .api.outgoing import outgoing
from .api.response import InferenceResponse
from .api.tensor import Tensor
from .call_responses import failed
from .context import caller, stops_loop
from .first_response import FirstResponse
from .ipc import Frame, Kind
from .ipc.channel import Channel, ChannelClosed
from .ipc.taken import Taken
from .ipc.waiter import Waiter

if TYPE_CHECKING:
    from .api.call import CallSpec

_FINAL, _EMPTY = 1, 2  # flags of an answer
_C = TypeVar("_C", bound="Call")


class Call:
    """The responses to one request, in their order: an iterator that waits for each. One thread at a time may use it.

    The server holds the model back that answers faster than they are taken; one that nobody holds any more runs out unheard.
    """

    def __init__(self, number: int, calls: Calls, decoupled: bool) -> None:
        self.number = number
        self.decoupled = decoupled
        self.begun = False  # something was answered
        self.over = False
        self._calls = calls
        self._waiter = Waiter()
        self._responses: deque[tuple[InferenceResponse, int]] = deque()
        self._taken = Taken()

    def __iter__(self) -> Call:
        return self

    def __next__(self) -> InferenceResponse:
        """Wait for the next response; one without outputs ends a stream whose model had nothing more to say."""
        if not self.begun:
            self._calls.want(self)
        self._calls.channel.wait(self._waiter, self._has_news)
        if not self._responses:
            raise StopIteration
        response, nbytes = self._responses.popleft()
        told = self._taken.add(nbytes)
        if told and not self.over:
            self._calls.tell(Kind.CALL_TAKEN, self.number, told)
        return response

    def __del__(self) -> None:
        if self.decoupled and not self.over:
            self._calls.tell(Kind.CALL_LEFT, self.number)

    def cancel(self) -> None:
        """Ask the server to end it early; answers still come, the last one says that it was cancelled."""
        if not self.over:
            self._calls.channel.send(Kind.CALL_CANCEL, [self.number])

    def take(self, response: InferenceResponse, nbytes: int, final: bool) -> None:
        """Add a response of that size, from whichever thread reads."""
        self._responses.append((response, nbytes))
        self.begun = True
        self.over = final
        self._waiter.wake()

    def _has_news(self) -> bool:
        return bool(self._responses) or self.over


class AsyncCall(Call):
    """A call whose first response is awaited on an event loop."""

    def __init__(self, number: int, calls: Calls, decoupled: bool, loop: AbstractEventLoop) -> None:
        super().__init__(number, calls, decoupled)
        self.first = FirstResponse(loop, self.cancel)

    def take(self, response: InferenceResponse, nbytes: int, final: bool) -> None:
        super().take(response, nbytes, final)
        self.first.arrive()


class Calls:
    """What this process has asked of other models."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._numbers = count(1)
        self._calls: WeakValueDictionary[int, Call] = WeakValueDictionary()
        self.awaited: set[object] = set()  # somebody must read for these: calls, and what else an event loop waits for
        channel.on(Kind.CALL_ANSWER, self._answered)

    def start(self, spec: CallSpec) -> Call:
        """Send the request; what goes wrong on the way is the error of its one response. Raises ChannelClosed."""
        return self._send(spec, Call(next(self._numbers), self, spec.decoupled))

    def start_on(self, loop: AbstractEventLoop, spec: CallSpec) -> AsyncCall:
        """Do the same; its first response is to be awaited on `loop`. Raises ChannelClosed."""
        call = AsyncCall(next(self._numbers), self, spec.decoupled, loop)
        self.awaited.add(call)
        self._send(spec, call)
        self.want(call)
        return call

    def want(self, call: Call) -> None:
        """Take note that somebody waits for the first answer of `call`, and may take nothing of another stream meanwhile."""
        if call.decoupled and any(
            other is not call and other.decoupled and not other.over for other in list(self._calls.values())
        ):
            self.tell(Kind.CALL_WANTED, call.number)

    def tell(self, kind: int, *words: int) -> None:
        """Say something of a call; a destructor may do so too. Nobody hears it from a process that the model started."""
        with suppress(ChannelClosed):
            self.channel.send(kind, words)

    def _send(self, spec: CallSpec, call: _C) -> _C:
        self._calls[call.number] = call
        execution, request = caller()
        if spec.trace is not None:
            request = spec.trace + 1
        try:
            self.channel.send(
                Kind.CALL,
                [call.number, execution, request],
                [[outgoing(tensor) for tensor in spec.inputs]],
                [spec.requested_output_names or None],
                _extras(spec, stops=not isinstance(call, AsyncCall) and stops_loop()),
            )
        except (OSError, MemoryError, TritonModelException) as error:
            self._take(call, failed(str(error) or type(error).__name__), 0, final=True)
        return call

    def _answered(self, frame: Frame) -> None:
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
        self._take(call, response, nbytes, bool(flags & _FINAL))

    def _take(self, call: Call, response: InferenceResponse, nbytes: int, final: bool) -> None:
        call.take(response, nbytes, final)
        if isinstance(call, AsyncCall):
            self.awaited.discard(call)


def _extras(spec: CallSpec, stops: bool) -> dict[str, Any]:
    extras: dict[str, Any] = {"model": spec.model_name, "version": spec.model_version, "decoupled": spec.decoupled}
    if stops:
        extras["stops_loop"] = True
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
