"""The calls of one worker to other models of the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tritonpy.api.backend import ModelContext
from tritonpy.errors import Internal, TritonError
from tritonpy.incidents import incident
from tritonpy.ipc import Frame, Kind, ProtocolError
from tritonpy.runners.call_streams import CallStream, CallStreams
from tritonpy.runners.model_calls import check_model_call, refused_model_call
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.executions import EMPTY, FINAL, Executions
from tritonpy.runners.workers.neighbours import Neighbours
from tritonpy.runners.workers.on_host import on_host
from tritonpy.runners.workers.said import Int64, Unsigned, convert, first_words
from tritonpy.runners.workers.told_error import tell_named_error
from tritonpy.types import (
    NO_PARAMETERS,
    InferRequest,
    InferResponse,
    OutputSpec,
    ParameterValue,
    SequenceInfo,
    StreamSink,
    Tensor,
    stand_in,
)

log = logging.getLogger("tritonpy.model")


class _Call(msgspec.Struct):
    """What a call says beside its tensors.

    `plain` is a request to the engine as backends of this process make it; others are subject to the rules of Triton's Python backend
    and hear its words.
    """

    model: str
    plain: bool = False
    version: Int64 = -1
    id: str = ""
    parameters: dict[str, str | bool | Int64 | float] = {}
    sequence: tuple[Unsigned | str, bool, bool] | None = None
    timeout_us: Unsigned = 0
    priority: Unsigned = 0
    decoupled: bool = False
    stops_loop: bool = False
    trace: bool = False
    deadline_ns: Unsigned = 0
    classes: dict[str, Unsigned] = {}  # how many classes are wanted, by output


class _CallSink(StreamSink):
    """Holds producers back while the worker has not taken what was sent."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[InferRequest, InferResponse], None],
        streams: CallStreams,
    ) -> None:
        super().__init__(loop, deliver)
        self._streams = streams

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        super().when_ready(request, callback)
        self._streams.let_go_on()


class Calls:
    """The open calls by the number that the worker gave them. Everything here runs on the loop's thread."""

    def __init__(
        self,
        model: ModelContext,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        executions: Executions,
        neighbours: Neighbours,
    ) -> None:
        self._engine, self._model_name = model.engine, model.name
        self._connection = connection
        self._executions = executions
        self._neighbours = neighbours
        self._streams = CallStreams()
        self._sink = _CallSink(loop, self._answered, self._streams)
        self._open: dict[int, InferRequest] = {}
        self._last = -1

    def make(self, frame: Frame) -> None:
        """Hand the request of a CALL frame to its model; what refuses it is its answer. Raises ProtocolError."""
        number, execution, request = first_words(frame, 3)
        if number in self._open:
            raise ProtocolError(f"call {number} is open and was made again")
        said = convert(frame.extras, _Call)
        rows, wants = self._connection.tensors_and_wants(frame, 3)
        if len(rows) != 1:
            raise ProtocolError(f"a call has {len(rows)} rows of tensors")
        batch, parent = self._executions.caller(execution, request)
        call = self._request(number, said, rows[0], wants[0], parent)
        told_by = self._executions.left_to_go_on() if said.stops_loop and batch is None else batch
        if parent is None and told_by is not None:
            call.parent = stand_in(self._model_name, told_by)
        self._last = max(self._last, number)
        self._open[number] = call
        self._streams.begin(call)
        try:
            if not said.plain:
                check_model_call(call, rows[0], self._neighbours.find)
            self._executions.calls = self._executions.calls or batch is not None or call.stops_loop
            self._neighbours.graph.admit(call, batch)
            self._engine.infer(call)
        except Exception as error:
            self._neighbours.graph.forget(call)
            self._close(number)
            refusal = error if isinstance(error, TritonError) else incident(log, f"a call of {said.model}", error)
            if not said.plain:
                refusal = refused_model_call(said.model, refusal)
            self._send(number, FINAL, error=refusal)
            return
        if parent is not None and parent.cancelled:
            call.cancel()

    def cancel(self, frame: Frame) -> None:
        """Cancel the call that a CALL_CANCEL frame names, if it still is open. Raises ProtocolError."""
        call = self._named(first_words(frame, 1)[0])
        if call is not None:
            call.cancel()

    def taken(self, frame: Frame) -> None:
        """Take note that the worker took as many answers of a call as a CALL_TAKEN frame says. Raises ProtocolError."""
        number, count = first_words(frame, 2)
        call = self._named(number)
        if call is not None:
            if not 0 < count <= call.tag.untaken:
                raise ProtocolError(f"{count} answers of call {number} were taken, there are {call.tag.untaken}")
            call.tag.took(count)

    def left(self, frame: Frame) -> None:
        """Let the call that a CALL_LEFT frame names run out unheard. Raises ProtocolError."""
        call = self._named(first_words(frame, 1)[0])
        if call is not None:
            call.tag.leave()

    def wanted(self, frame: Frame) -> None:
        """Take note that the worker waits for the first answer of the call that a CALL_WANTED frame names. Raises ProtocolError."""
        call = self._named(first_words(frame, 1)[0])
        if call is not None:
            self._streams.want(call)

    def caller_cancelled(self, request: InferRequest) -> None:
        """Cancel what was called to answer `request`."""
        for call in list(self._open.values()):
            if call.parent is request:
                call.cancel()

    def close(self) -> None:
        """Cancel every call: the worker is gone."""
        for number, call in list(self._open.items()):
            self._close(number)
            self._neighbours.graph.forget(call)  # an event loop that stood still for it is no more
            call.cancel()

    def _named(self, number: int) -> InferRequest | None:
        if number > self._last:
            raise ProtocolError(f"call {number} was named and never made")
        return self._open.get(number)

    def _close(self, number: int) -> None:
        call = self._open.pop(number)
        self._streams.end(call)
        call.tag.leave()

    def _request(
        self,
        number: int,
        said: _Call,
        inputs: Sequence[Tensor],
        wants: tuple[str, ...] | None,
        parent: InferRequest | None,
    ) -> InferRequest:
        call = InferRequest(
            said.model,
            {tensor.name: tensor for tensor in inputs},
            self._sink,
            said.version,
            said.id,
            None if wants is None else {name: OutputSpec(name, said.classes.get(name, 0)) for name in wants},
            said.parameters or NO_PARAMETERS,
            said.priority,
            said.timeout_us,
            said.deadline_ns,
            SequenceInfo(*said.sequence) if said.sequence is not None and said.sequence[0] else None,
            said.decoupled,
            bool(said.classes),
            tag=CallStream(number),
            parent=parent,
            stops_loop=said.stops_loop,
        )
        if parent is not None:
            call.principal, call.headers = parent.principal, parent.headers
            call.deadline_ns = call.deadline_ns if said.plain else parent.deadline_ns
            call.trace = parent.trace if said.trace else None
        return call

    def _answered(self, call: InferRequest, response: InferResponse) -> None:
        number: int = call.tag.number
        if call.tag.left:  # the worker too is gone, or was told of a failure
            call.tag.took()
            if response.final and number in self._open:
                self._close(number)
            return
        flags = (FINAL if response.final else 0) | (EMPTY if response.empty else 0)
        if response.final:
            self._close(number)
        try:
            self._send(number, flags, response.outputs, response.parameters, response.error, response.model_version)
        except OSError as error:
            if not response.final:
                self._close(number)
            call.cancel()
            self._send(
                number, FINAL, error=Internal(f"no shared memory for the outputs of model '{call.model_name}': {error}")
            )

    def _send(
        self,
        number: int,
        flags: int,
        outputs: Sequence[Tensor] = (),
        parameters: Mapping[str, ParameterValue] = NO_PARAMETERS,
        error: TritonError | None = None,
        version: int = -1,
    ) -> None:
        extras: dict[str, Any] = {} if version < 0 else {"version": version}
        if error is not None:
            extras["error"] = tell_named_error(error)
        if parameters:
            extras["parameters"] = dict(parameters)
        rows = [] if error is not None or flags & EMPTY else [on_host(outputs)]
        self._connection.send(Kind.CALL_ANSWER, [number, flags], rows, None, extras)
