"""Control client over gRPC."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.message import Message

from tritonpy import StartupError
from tritonpy_load_generator.options import BadUsage, LoadOptions
from tritonpy_load_generator.target.control import (
    LOAD_TIMEOUT_S,
    TIMEOUT_S,
    ControlClient,
    JsonObject,
    RequestRejected,
)
from tritonpy_load_generator.target.metadata import ServerDescription
from tritonpy_load_generator.wire.address import grpc_address
from tritonpy_protos import METHODS
from tritonpy_protos import grpc_service_pb2 as pb

_METHODS = {method.name: method for method in METHODS}
_MISSING = {
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.INVALID_ARGUMENT,
}


class GrpcControlClient(ControlClient):
    """Sends control calls on one gRPC channel."""

    def __init__(self, options: LoadOptions) -> None:
        address = grpc_address(options)
        self._target = f"unix:{address.unix_path}" if address.unix_path else str(address)
        settings = [("grpc.max_receive_message_length", -1)]
        self._channel = (
            grpc.secure_channel(self._target, _credentials(options), settings)
            if address.tls
            else grpc.insecure_channel(self._target, settings)
        )
        self._metadata = tuple((name.lower(), value) for name, value in options.headers)

    def server(self) -> ServerDescription:
        """Return the server's metadata."""
        response = self._call("ServerMetadata", pb.ServerMetadataRequest())
        return ServerDescription(response.name, response.version, tuple(response.extensions))

    def metadata(self, model: str, version: str) -> JsonObject:
        """Return a model's metadata."""
        return _plain(
            self._call("ModelMetadata", pb.ModelMetadataRequest(name=model, version=version))
        )

    def config(self, model: str, version: str) -> JsonObject:
        """Return a model's configuration."""
        response = _plain(
            self._call("ModelConfig", pb.ModelConfigRequest(name=model, version=version))
        )
        config: JsonObject = response.get("config", {})
        return config

    def statistics(self, model: str, version: str) -> Sequence[JsonObject]:
        """Return a model's statistics, one entry per version; those of all models for ""."""
        response = _plain(
            self._call("ModelStatistics", pb.ModelStatisticsRequest(name=model, version=version))
        )
        return list(response.get("model_stats", ()))

    def load(self, model: str, config: JsonObject | None = None) -> None:
        """Load a model, with `config` instead of the configuration in its repository."""
        request = pb.RepositoryModelLoadRequest(model_name=model)
        if config is not None:
            request.parameters["config"].string_param = json.dumps(config)
        self._call("RepositoryModelLoad", request, LOAD_TIMEOUT_S)

    def register(self, region: str, key: str, byte_size: int) -> None:
        """Register system shared memory."""
        request = pb.SystemSharedMemoryRegisterRequest(
            name=region, key=key, offset=0, byte_size=byte_size
        )
        self._call("SystemSharedMemoryRegister", request)

    def unregister(self, region: str) -> None:
        """Unregister system shared memory."""
        self._call(
            "SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest(name=region)
        )

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _call(self, name: str, request: Message, timeout_s: float = TIMEOUT_S) -> Any:
        method = _METHODS[name]
        call = self._channel.unary_unary(
            method.path, type(request).SerializeToString, method.response.FromString
        )
        try:
            return call(request, timeout=timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
                raise StartupError(
                    f"cannot reach a server over gRPC at {self._target}: {details}"
                ) from error
            raise RequestRejected(
                f"{name} failed with {code.name}: {details}", code in _MISSING
            ) from error


def _credentials(options: LoadOptions) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        _content(options.ssl_grpc_root_certifications_file),
        _content(options.ssl_grpc_private_key_file),
        _content(options.ssl_grpc_certificate_chain_file),
    )


def _content(path: str | None) -> bytes | None:
    try:
        return None if path is None else Path(path).read_bytes()
    except OSError as error:
        raise BadUsage(f"the files of --ssl-grpc-… cannot be used: {error}") from error


def _plain(message: Message) -> JsonObject:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)
