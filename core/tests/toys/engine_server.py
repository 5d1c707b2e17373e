"""A server that makes an engine accessible through a Unix socket."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import msgspec

from tritonpy.api.engine import Engine
from tritonpy.api.trace_sink import TraceChanges
from tritonpy.frontend import LogChanges
from tritonpy_types import CallbackSink, InferRequest, InferResponse
from tritonpy_types.errors import TritonError

from .engine_frames import Cancel, Infer, MethodCall, MethodResult, Response, ToEngine
from .frames import Channel, error_to_wire, from_wire, to_wire

_CHANGES: dict[str, Any] = {
    "change_trace_settings": TraceChanges,
    "change_log_settings": LogChanges,
}


class EngineServer:
    """Serves one connection at `path`, as a context manager.

    Methods other than `infer` run in a separate thread.
    """

    def __init__(self, engine: Engine, path: Path) -> None:
        self._engine = engine
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._methods = ThreadPoolExecutor(1, "engine-methods")
        self._sink = CallbackSink(self._respond)
        self._open: dict[int, InferRequest] = {}
        self._channel: Channel
        self._thread = threading.Thread(target=self._run, name="engine-server")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._thread.join()  # ends when the client closes the connection
        self._methods.shutdown()

    def _run(self) -> None:
        connection, _ = self._listener.accept()
        self._listener.close()
        self._channel = Channel(connection)
        while (frame := self._channel.receive(ToEngine)) is not None:
            if isinstance(frame, Infer):
                self._infer(frame)
            elif isinstance(frame, Cancel):
                request = self._open.get(frame.id)
                if request is not None:
                    request.cancel()
            else:
                self._methods.submit(self._call_method, frame)
        self._channel.close()

    def _infer(self, frame: Infer) -> None:
        request = InferRequest(
            frame.model_name, from_wire(frame.inputs), self._sink, frame.model_version, frame.request_id,
            outputs=None if frame.outputs is None else {spec.name: spec for spec in frame.outputs},
            parameters=frame.parameters, priority=frame.priority, timeout_us=frame.timeout_us,
            deadline_ns=frame.deadline_ns, sequence=frame.sequence, accepts_decoupled=frame.accepts_decoupled,
            classifies=frame.classifies, tag=frame.id,
        )  # fmt: skip
        self._open[frame.id] = request
        try:
            self._engine.infer(request)
        except TritonError as error:
            self._respond(request, InferResponse.failed(request, error))

    def _respond(self, request: InferRequest, response: InferResponse) -> None:
        if response.final:
            self._open.pop(request.tag)
        self._channel.send(
            Response(
                request.tag, to_wire(response.outputs), response.model_name, response.model_version, response.id,
                dict(response.parameters), error_to_wire(response.error), response.final, response.empty,
            )
        )  # fmt: skip

    def _call_method(self, frame: MethodCall) -> None:
        result: Any = None
        error = None
        arguments = list(frame.arguments)
        if frame.method in _CHANGES:
            arguments[0] = msgspec.convert(arguments[0], _CHANGES[frame.method])
        try:
            result = getattr(self._engine, frame.method)(*arguments)
        except TritonError as raised:
            error = error_to_wire(raised)
        if frame.method == "model_config" and error is None:
            result = result.SerializeToString()
        self._channel.send(
            MethodResult(frame.id, msgspec.Raw(msgspec.msgpack.encode(result)), error)
        )
