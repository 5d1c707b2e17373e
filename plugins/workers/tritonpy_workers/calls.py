"""The calls of one worker to other models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tritonpy import (
    InferRequest,
    InferResponse,
    Internal,
    ModelContext,
    OutputSpec,
    ParameterValue,
    SequenceInfo,
    Tensor,
    TritonError,
)
from tritonpy.execution import CallStream, CallStreams, check_model_call, refused_model_call
from tritonpy.frontend import NO_PARAMETERS, StreamSink, internal_error
from tritonpy.tracing import synthetic_parent
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.host_tensors import to_host
from tritonpy_engine_rpc.messages import Int64, Unsigned, convert, encode_named_error, first_words
from tritonpy_ipc import Frame, Kind, ProtocolError
from tritonpy_workers.executions import EMPTY, FINAL, Executions
from tritonpy_workers.worker_registry import WorkerRegistry

log = logging.getLogger("tritonpy.model")


class _CallMessage(msgspec.Struct):
    """The JSON fields of a call.

    A `plain` call is a request of a backend of this project. The rules and error texts of Triton's
    Python backend apply to other calls.
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
    blocks_loop: bool = False
    trace: bool = False
    deadline_ns: Unsigned = 0
    classes: dict[str, Unsigned] = {}  # number of classes to return, by output


class _CallSink(StreamSink):
    """Blocks producers while the worker has not consumed their responses."""

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
        self._streams.resume_blocked()


class WorkerCalls:
    """The calls in flight by the worker's number; all methods run on the event loop's thread."""

    def __init__(
        self,
        model: ModelContext,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        executions: Executions,
        registry: WorkerRegistry,
    ) -> None:
        self._engine, self._model_name = model.engine, model.name
        self._connection = connection
        self._executions = executions
        self._registry = registry
        self._streams = CallStreams()
        self._sink = _CallSink(loop, self._forward_response, self._streams)
        self._open: dict[int, InferRequest] = {}
        self._last = -1

    def make(self, frame: Frame) -> None:
        """Send the request of a CALL frame to its model, or return the error of a refused call.

        Raises `ProtocolError`.
        """
        number, execution, request = first_words(frame, 3)
        if number in self._open:
            raise ProtocolError(f"call {number} is already in flight")
        message = convert(frame.extras, _CallMessage)
        rows, requested = self._connection.tensors_and_outputs(frame, 3)
        if len(rows) != 1:
            raise ProtocolError(f"a call has {len(rows)} rows of tensors")
        batch, parent = self._executions.caller(execution, request)
        call = self._request(number, message, rows[0], requested[0], parent)
        caller = (
            self._executions.background_batch() if message.blocks_loop and batch is None else batch
        )
        if parent is None and caller is not None:
            call.parent = synthetic_parent(self._model_name, caller)
        self._last = max(self._last, number)
        self._open[number] = call
        self._streams.begin(call)
        try:
            if not message.plain:
                check_model_call(call, rows[0], self._registry.find)
            self._executions.calls = self._executions.calls or batch is not None or call.blocks_loop
            self._registry.graph.admit(call, batch)
            self._engine.infer(call)
        except Exception as error:
            self._registry.graph.forget(call)
            self._close(number)
            refusal = (
                error
                if isinstance(error, TritonError)
                else internal_error(log, f"a call to {message.model}", error)
            )
            if not message.plain:
                refusal = refused_model_call(message.model, refusal)
            self._send(number, FINAL, error=refusal)
            return
        if parent is not None and parent.cancelled:
            call.cancel()

    def cancel(self, frame: Frame) -> None:
        """Cancel the call of a CALL_CANCEL frame if it is in flight. Raises `ProtocolError`."""
        call = self._find(first_words(frame, 1)[0])
        if call is not None:
            call.cancel()

    def consume(self, frame: Frame) -> None:
        """Record the consumed responses of a CALL_CONSUMED frame. Raises `ProtocolError`."""
        number, count = first_words(frame, 2)
        call = self._find(number)
        if call is not None:
            if not 0 < count <= call.tag.unconsumed:
                raise ProtocolError(
                    f"{count} responses of call {number} were consumed, but only "
                    f"{call.tag.unconsumed} were sent"
                )
            call.tag.consume(count)

    def abandon(self, frame: Frame) -> None:
        """Let the call of a CALL_ABANDONED frame run unconsumed. Raises `ProtocolError`."""
        call = self._find(first_words(frame, 1)[0])
        if call is not None:
            call.tag.abandon()

    def mark_awaited(self, frame: Frame) -> None:
        """Record that the worker waits for the first response of a CALL_AWAITED frame's call.

        Raises `ProtocolError`.
        """
        call = self._find(first_words(frame, 1)[0])
        if call is not None:
            self._streams.mark_awaited(call)

    def caller_cancelled(self, request: InferRequest) -> None:
        """Cancel the calls that were made to process `request`."""
        for call in list(self._open.values()):
            if call.parent is request:
                call.cancel()

    def close(self) -> None:
        """Cancel every call: the worker is gone."""
        for number, call in list(self._open.items()):
            self._close(number)
            self._registry.graph.forget(call)  # the event loop that it blocked is gone, too
            call.cancel()

    def _find(self, number: int) -> InferRequest | None:
        if number > self._last:
            raise ProtocolError(f"call {number} was never made")
        return self._open.get(number)

    def _close(self, number: int) -> None:
        call = self._open.pop(number)
        self._streams.end(call)
        call.tag.abandon()

    def _request(
        self,
        number: int,
        message: _CallMessage,
        inputs: Sequence[Tensor],
        requested: tuple[str, ...] | None,
        parent: InferRequest | None,
    ) -> InferRequest:
        call = InferRequest(
            message.model,
            {tensor.name: tensor for tensor in inputs},
            self._sink,
            message.version,
            message.id,
            None
            if requested is None
            else {name: OutputSpec(name, message.classes.get(name, 0)) for name in requested},
            message.parameters or NO_PARAMETERS,
            message.priority,
            message.timeout_us,
            message.deadline_ns,
            SequenceInfo(*message.sequence)
            if message.sequence is not None and message.sequence[0]
            else None,
            message.decoupled,
            bool(message.classes),
            tag=CallStream(number),
            parent=parent,
            blocks_loop=message.blocks_loop,
        )
        if parent is not None:
            call.principal, call.headers = parent.principal, parent.headers
            call.deadline_ns = call.deadline_ns if message.plain else parent.deadline_ns
            call.trace = parent.trace if message.trace else None
        return call

    def _forward_response(self, call: InferRequest, response: InferResponse) -> None:
        number: int = call.tag.number
        if call.tag.abandoned:  # the worker is gone, or a failure was sent
            call.tag.consume()
            if response.final and number in self._open:
                self._close(number)
            return
        flags = (FINAL if response.final else 0) | (EMPTY if response.empty else 0)
        if response.final:
            self._close(number)
        try:
            self._send(
                number,
                flags,
                response.outputs,
                response.parameters,
                response.error,
                response.model_version,
            )
        except OSError as error:
            if not response.final:
                self._close(number)
            call.cancel()
            self._send(
                number,
                FINAL,
                error=Internal(
                    f"no shared memory for the outputs of model '{call.model_name}': {error}"
                ),
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
            extras["error"] = encode_named_error(error)
        if parameters:
            extras["parameters"] = dict(parameters)
        rows = [] if error is not None or flags & EMPTY else [to_host(outputs)]
        self._connection.send(Kind.CALL_RESPONSE, [number, flags], rows, None, extras)
