"""Questions over gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.message import Message

from tritonpy import StartupError
from tritonpy_bench.options import BadUsage, BenchOptions
from tritonpy_bench.target.control import TIMEOUT_S, Control, Plain, Refused
from tritonpy_bench.target.facts import ServerFacts
from tritonpy_bench.wire.address import grpc_address
from tritonpy_protos import METHODS
from tritonpy_protos import grpc_service_pb2 as pb

_METHODS = {method.name: method for method in METHODS}
_MISSING = {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INVALID_ARGUMENT}


class GrpcControl(Control):
    """One channel."""

    def __init__(self, options: BenchOptions) -> None:
        address = grpc_address(options)
        self._target = f"unix:{address.unix_path}" if address.unix_path else str(address)
        settings = [("grpc.max_receive_message_length", -1)]
        self._channel = (
            grpc.secure_channel(self._target, _credentials(options), settings)
            if address.tls
            else grpc.insecure_channel(self._target, settings)
        )
        self._metadata = tuple((name.lower(), value) for name, value in options.headers)

    def server(self) -> ServerFacts:
        """Return what the server says of itself."""
        answer = self._ask("ServerMetadata", pb.ServerMetadataRequest())
        return ServerFacts(answer.name, answer.version, tuple(answer.extensions))

    def metadata(self, model: str, version: str) -> Plain:
        """Return a model's metadata."""
        return _plain(self._ask("ModelMetadata", pb.ModelMetadataRequest(name=model, version=version)))

    def config(self, model: str, version: str) -> Plain:
        """Return a model's configuration."""
        answer = _plain(self._ask("ModelConfig", pb.ModelConfigRequest(name=model, version=version)))
        config: Plain = answer.get("config", {})
        return config

    def statistics(self, model: str, version: str) -> Sequence[Plain]:
        """Return a model's statistics, one entry per version."""
        answer = _plain(self._ask("ModelStatistics", pb.ModelStatisticsRequest(name=model, version=version)))
        return list(answer.get("model_stats", ()))

    def register(self, region: str, key: str, byte_size: int) -> None:
        """Register system shared memory."""
        request = pb.SystemSharedMemoryRegisterRequest(name=region, key=key, offset=0, byte_size=byte_size)
        self._ask("SystemSharedMemoryRegister", request)

    def unregister(self, region: str) -> None:
        """Take a region's registration back."""
        self._ask("SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest(name=region))

    def close(self) -> None:
        """Hang up."""
        self._channel.close()

    def _ask(self, name: str, request: Message) -> Any:
        method = _METHODS[name]
        call = self._channel.unary_unary(method.path, type(request).SerializeToString, method.response.FromString)
        try:
            return call(request, timeout=TIMEOUT_S, metadata=self._metadata)
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
                raise StartupError(f"nobody answers over gRPC at {self._target}: {details}") from error
            raise Refused(f"{name} was answered with {code.name}: {details}", code in _MISSING) from error


def _credentials(options: BenchOptions) -> grpc.ChannelCredentials:
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


def _plain(message: Message) -> Plain:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)
