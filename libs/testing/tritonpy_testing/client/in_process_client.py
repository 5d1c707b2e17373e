"""A client that calls an engine in the same process."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

import msgspec

from tritonpy import Engine, InferRequest, ParameterValue, SequenceInfo, TritonError, now_ns
from tritonpy.config import config_to_dict
from tritonpy.frontend import NO_PARAMETERS, RegionKind, RegionSlice, Sink
from tritonpy_testing.client.calls import Callback, InferAsyncRequest, Stream
from tritonpy_testing.client.exception import InferenceServerException
from tritonpy_testing.client.infer_input import tensor_of
from tritonpy_testing.client.infer_result import InferResult
from tritonpy_testing.client.requested_output import spec_of
from tritonpy_testing.client.settings import (
    change_log_settings,
    change_trace_settings,
    read_log_settings,
    read_trace_settings,
)
from tritonpy_testing.client.wire_options import INFERENCE, QUERY, STREAM, takes

T = TypeVar("T")
NO_SETTINGS: Mapping[str, Any] = {}


class HasEngine(Protocol):
    """A server, running or only built."""

    @property
    def engine(self) -> Engine:
        """The engine to call."""


class InProcessClient:
    """A client of an engine, or of a server with an engine, without sockets. It is thread-safe.

    Methods, arguments and results are those of tritonclient.http, streams are those of
    tritonclient.grpc. Arguments that only concern the wire, such as `as_json` and
    `compression_algorithm`, are accepted and ignored. `inputs` and `outputs` may be this package's
    or either tritonclient's. Errors are InferenceServerException.
    """

    def __init__(self, engine_or_server: Engine | HasEngine) -> None:
        self._engine = (
            engine_or_server if isinstance(engine_or_server, Engine) else engine_or_server.engine
        )
        self._stream: Stream | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the stream, if one is open."""
        self.stop_stream()

    @takes(QUERY)
    def is_server_live(self) -> bool:
        """Return whether the server runs."""
        return self._engine.is_live()

    @takes(QUERY)
    def is_server_ready(self) -> bool:
        """Return whether the server is ready for requests."""
        return self._engine.is_ready()

    @takes(QUERY)
    def is_model_ready(self, model_name: str, model_version: str = "") -> bool:
        """Return whether the model is ready; False for an unknown model."""
        try:
            return self._engine.is_model_ready(model_name, _version(model_version))
        except TritonError:
            return False

    @takes(QUERY)
    def get_server_metadata(self) -> dict[str, Any]:
        """Return name, version and extensions."""
        return _object(self._engine.server_metadata)

    @takes(QUERY)
    def get_model_metadata(self, model_name: str, model_version: str = "") -> dict[str, Any]:
        """Return name, versions, platform, inputs and outputs."""
        return _object(lambda: self._engine.model_metadata(model_name, _version(model_version)))

    @takes(QUERY)
    def get_model_config(self, model_name: str, model_version: str = "") -> dict[str, Any]:
        """Return the completed configuration."""
        return config_to_dict(
            _call(lambda: self._engine.model_config(model_name, _version(model_version)))
        )

    @takes(QUERY)
    def get_model_repository_index(self) -> list[dict[str, Any]]:
        """Return one entry per model version: name, version, state, reason."""
        return _objects(self._engine.repository_index)

    @takes(QUERY)
    def get_inference_statistics(
        self, model_name: str = "", model_version: str = ""
    ) -> dict[str, Any]:
        """Return `{"model_stats": […]}` of one model, or of all."""
        return {
            "model_stats": _objects(
                lambda: self._engine.statistics(model_name, _version(model_version))
            )
        }

    @takes(QUERY)
    def load_model(
        self,
        model_name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        """Load or reload all or some versions, and return when the model is ready."""
        _call(lambda: self._engine.load_model(model_name, config, files, versions))

    @takes(QUERY)
    def unload_model(
        self, model_name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:  # fmt: skip
        """Start to unload all or some versions."""
        _call(lambda: self._engine.unload_model(model_name, unload_dependents, versions))

    @takes(QUERY)
    def register_system_shared_memory(
        self, name: str, key: str, byte_size: int, offset: int = 0
    ) -> None:
        """Register a part of a POSIX shared-memory object."""
        _call(lambda: self._engine.register_system_region(name, key, offset, byte_size))

    @takes(QUERY)
    def get_system_shared_memory_status(self, region_name: str = "") -> list[dict[str, Any]]:
        """Return one or all registered regions of host memory."""
        return _objects(lambda: self._engine.regions(RegionKind.SYSTEM, region_name))

    @takes(QUERY)
    def unregister_system_shared_memory(self, name: str = "") -> None:
        """Unregister one or all regions of host memory."""
        _call(lambda: self._engine.unregister_regions(RegionKind.SYSTEM, name))

    @takes(QUERY)
    def register_cuda_shared_memory(
        self, name: str, raw_handle: bytes, device_id: int, byte_size: int
    ) -> None:
        """Register GPU memory by its IPC handle in base64."""
        _call(
            lambda: self._engine.register_cuda_region(
                name, b64decode(raw_handle), device_id, byte_size
            )
        )

    @takes(QUERY)
    def get_cuda_shared_memory_status(self, region_name: str = "") -> list[dict[str, Any]]:
        """Return one or all registered regions of GPU memory."""
        return _objects(lambda: self._engine.regions(RegionKind.CUDA, region_name))

    @takes(QUERY)
    def unregister_cuda_shared_memory(self, name: str = "") -> None:
        """Unregister one or all regions of GPU memory."""
        _call(lambda: self._engine.unregister_regions(RegionKind.CUDA, name))

    @takes(QUERY)
    def get_trace_settings(self, model_name: str | None = None) -> dict[str, Any]:
        """Return the trace settings of a model, or of models without their own settings."""
        return _call(lambda: read_trace_settings(self._engine, model_name or ""))

    @takes(QUERY)
    def update_trace_settings(
        self,
        model_name: str | None = None,
        settings: Mapping[str, str | list[str] | None] = NO_SETTINGS,
    ) -> dict[str, Any]:
        """Change trace settings and return all of them. None clears a value."""
        _call(lambda: change_trace_settings(self._engine, model_name or "", settings))
        return self.get_trace_settings(model_name)

    @takes(QUERY)
    def get_log_settings(self) -> dict[str, Any]:
        """Return the log settings."""
        return _call(lambda: read_log_settings(self._engine))

    @takes(QUERY)
    def update_log_settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Change log settings and return all of them."""
        _call(lambda: change_log_settings(self._engine, settings))
        return self.get_log_settings()

    @takes(INFERENCE)
    def infer(
        self, model_name: str, inputs: Sequence[Any], model_version: str = "",
        outputs: Sequence[Any] | None = None,
        request_id: str = "", *, client_timeout: float | None = None, **fields: Any,
    ) -> InferResult:  # fmt: skip
        """Return the model's only response. `fields` are those of `async_infer`.

        After `client_timeout` seconds, cancels the request and raises InferenceServerException.
        """
        call = self.async_infer(
            model_name,
            inputs,
            model_version=model_version,
            outputs=outputs,
            request_id=request_id,
            **fields,
        )
        if not call.wait(client_timeout):
            call.expire()
        return call.get_result()

    @takes(INFERENCE)
    def async_infer(
        self, model_name: str, inputs: Sequence[Any], callback: Callback | None = None, *,
        client_timeout: float | None = None, **fields: Any,
    ) -> InferAsyncRequest:  # fmt: skip
        """Start an inference. With `callback`, call `callback(result, error)` with the response.

        - `fields`: model_version, outputs, request_id, sequence_id, sequence_start, sequence_end,
          priority, timeout (µs), headers, parameters.
        - `client_timeout`: seconds after which the request is cancelled with
          InferenceServerException.
        """
        call = InferAsyncRequest(callback, client_timeout)
        call.send(self._engine, _request(call, model_name, inputs, **fields))
        return call

    @takes(STREAM)
    def start_stream(self, callback: Callback) -> None:
        """Open the stream. `callback(result, error)` gets each response; one argument is None."""
        if self._stream is not None:
            raise InferenceServerException(
                "a stream is already open: a client has only one at a time"
            )
        self._stream = Stream(callback)

    @takes(INFERENCE)
    def async_stream_infer(
        self,
        model_name: str,
        inputs: Sequence[Any],
        *,
        enable_empty_final_response: bool = False,
        **fields: Any,
    ) -> None:
        """Send a request on the stream. Decoupled models may send any number of responses.

        `fields` are those of `async_infer`.
        """
        if self._stream is None:
            raise InferenceServerException("no stream is open: call start_stream() first")
        request = _request(self._stream, model_name, inputs, **fields)
        request.accepts_decoupled = True
        request.tag = enable_empty_final_response
        self._stream.send(self._engine, request)

    def stop_stream(self, cancel_requests: bool = False) -> None:
        """Wait for the responses of the stream's requests, or cancel them, and close the stream."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.stop(cancel_requests)


def _request(
    sink: Sink, model_name: str, inputs: Sequence[Any], *,
    model_version: str = "", outputs: Sequence[Any] | None = None, request_id: str = "",
    sequence_id: int | str = 0,
    sequence_start: bool = False, sequence_end: bool = False, priority: int = 0,
    timeout: int | None = None,
    headers: Mapping[str, str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
) -> InferRequest:  # fmt: skip
    tensors = [tensor_of(item) for item in inputs]
    specs = None if outputs is None else [spec_of(item) for item in outputs]
    return InferRequest(
        model_name,
        {tensor.name: tensor for tensor in tensors},
        sink,
        _version(model_version),
        request_id,
        None if specs is None else {spec.name: spec for spec in specs},
        parameters or NO_PARAMETERS,
        priority,
        timeout or 0,
        sequence=SequenceInfo(sequence_id, sequence_start, sequence_end) if sequence_id else None,
        classifies=any(spec.classification for spec in specs or ()),
        uses_regions=any(isinstance(tensor.data, RegionSlice) for tensor in tensors)
        or any(spec.region for spec in specs or ()),
        headers=headers,
        received_ns=now_ns(),
    )


def _version(text: str) -> int:
    if not text:
        return -1
    if not text.isdecimal() or int(text) == 0:
        raise InferenceServerException(
            (
                f"failed to get model version from specified version string '{text}', "
                "version should be an integral value > 0"
            ),
            "INVALID_ARG",
        )
    return int(text)


def _object(query: Callable[[], Any]) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.to_builtins(_call(query))
    return tree


def _objects(query: Callable[[], Any]) -> list[dict[str, Any]]:
    trees: list[dict[str, Any]] = msgspec.to_builtins(_call(query))
    return trees


def _call(query: Callable[[], T]) -> T:
    try:
        return query()
    except TritonError as error:
        raise InferenceServerException.of(error) from error
