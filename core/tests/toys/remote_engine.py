"""A client of an engine in another process, or anywhere behind a socket."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tritonpy.api.engine import (
    Engine,
    ModelGauges,
    ModelIndex,
    ModelMetadata,
    ModelStatistics,
    ServerMetadata,
)
from tritonpy.api.trace_sink import TraceChanges, TraceSettings
from tritonpy.frontend import LogChanges, LogSettings
from tritonpy_metrics import FamilySnapshot
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types import CudaRegion, InferRequest, InferResponse, RegionKind, SystemRegion
from tritonpy_types.errors import Unavailable

from .engine_frames import Cancel, FromEngine, Infer, MethodCall, MethodResult, Response
from .frames import Channel, error_from_wire, from_wire, to_wire


class RemoteEngine(Engine):
    """Speaks to an `EngineServer`.

    `infer` sends and returns. If the server refuses a request, the error arrives as a response.
    """

    def __init__(self, path: Path) -> None:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        self._channel = Channel(connection)
        self._numbers = itertools.count()
        self._requests: dict[int, InferRequest] = {}
        self._calls: dict[int, _Waiting] = {}
        self._reader = threading.Thread(target=self._read, name="remote-engine")
        self._reader.start()

    def close(self) -> None:
        """Close the connection; requests in flight fail with Unavailable."""
        self._channel.close()
        self._reader.join()

    def infer(self, request: InferRequest) -> None:
        number = next(self._numbers)
        request.owner = _RemoteOwner(self, number)
        self._requests[number] = request
        self._channel.send(
            Infer(
                number, request.model_name, request.model_version, request.id, to_wire(request.inputs.values()),
                None if request.outputs is None else list(request.outputs.values()), dict(request.parameters),
                request.priority, request.timeout_us, request.deadline_ns, request.sequence,
                request.accepts_decoupled, request.classifies,
            )
        )  # fmt: skip

    def cancel(self, number: int) -> None:
        """Send a cancellation."""
        self._channel.send(Cancel(number))

    def server_metadata(self) -> ServerMetadata:
        return self._call(ServerMetadata, "server_metadata")

    def is_live(self) -> bool:
        return self._call(bool, "is_live")

    def is_ready(self) -> bool:
        return self._call(bool, "is_ready")

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        return self._call(bool, "is_model_ready", name, version)

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        return self._call(ModelMetadata, "model_metadata", name, version)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        return ModelConfig.FromString(self._call(bytes, "model_config", name, version))

    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        return self._call(list[ModelStatistics], "statistics", name, version)

    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        return self._call(dict[tuple[str, str], ModelGauges], "gauges")

    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        return self._call(list[FamilySnapshot], "custom_metrics")

    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        return self._call(list[ModelIndex], "repository_index", ready)

    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        self._call(
            None, "load_model", name, config, None if files is None else dict(files), list(versions)
        )

    def unload_model(
        self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:
        self._call(None, "unload_model", name, unload_dependents, list(versions))

    def regions(self, kind: RegionKind, name: str = "") -> Sequence[SystemRegion | CudaRegion]:
        return self._call(
            list[SystemRegion] if kind == "system" else list[CudaRegion], "regions", kind, name
        )

    def check_region(self, kind: RegionKind, name: str) -> None:
        self._call(None, "check_region", kind, name)

    def register_system_region(self, name: str, key: str, offset: int, byte_size: int) -> None:
        self._call(None, "register_system_region", name, key, offset, byte_size)

    def register_cuda_region(
        self, name: str, handle: bytes, device_id: int, byte_size: int
    ) -> None:
        self._call(None, "register_cuda_region", name, handle, device_id, byte_size)

    def unregister_regions(self, kind: RegionKind, name: str = "") -> None:
        self._call(None, "unregister_regions", kind, name)

    def trace_settings(self, model_name: str = "") -> TraceSettings:
        return self._call(TraceSettings, "trace_settings", model_name)

    def change_trace_settings(self, changes: TraceChanges, model_name: str = "") -> None:
        self._call(None, "change_trace_settings", changes, model_name)

    def log_settings(self) -> LogSettings:
        return self._call(LogSettings, "log_settings")

    def change_log_settings(self, changes: LogChanges) -> None:
        self._call(None, "change_log_settings", changes)

    def _call(self, kind: Any, method: str, *arguments: Any) -> Any:
        number = next(self._numbers)
        waiting = self._calls[number] = _Waiting()
        self._channel.send(MethodCall(number, method, list(arguments)))
        assert waiting.done.wait(10), f"no response to {method}"
        error = error_from_wire(waiting.result.error)
        if error is not None:
            raise error
        return msgspec.msgpack.decode(waiting.result.result, type=kind)

    def _read(self) -> None:
        while (frame := self._channel.receive(FromEngine)) is not None:
            if isinstance(frame, Response):
                self._respond(frame)
            else:
                waiting = self._calls.pop(frame.id)
                waiting.result = frame
                waiting.done.set()
        for request in list(self._requests.values()):
            request.sink.put(
                request, InferResponse.failed(request, Unavailable("the engine is gone"))
            )

    def _respond(self, frame: Response) -> None:
        request = self._requests[frame.id]
        if frame.final:
            del self._requests[frame.id]
            request.finished = True
        request.sink.put(
            request,
            InferResponse(
                list(from_wire(frame.outputs).values()), frame.model_name, frame.model_version, frame.request_id,
                frame.parameters, error_from_wire(frame.error), frame.final, frame.empty,
            ),
        )  # fmt: skip


class _Waiting:
    """A call without a result yet."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.result: MethodResult


class _RemoteOwner:
    """The local owner of a request whose model runs in another process."""

    def __init__(self, engine: RemoteEngine, number: int) -> None:
        self._engine = engine
        self._number = number

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        raise AssertionError("only the other end responds: this is a bug")

    def reschedule(self, request: InferRequest) -> None:
        raise AssertionError("only a backend reschedules: this is a bug")

    def cancel(self, request: InferRequest) -> None:
        self._engine.cancel(self._number)
