"""Channels of gRPC and the two methods that carry inferences, with messages as bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import grpc

from tritonpy_bench.options import BenchOptions
from tritonpy_bench.wire.grpc_channel import (
    channel_credentials,
    channel_options,
    compression_of,
    grpc_target,
    metadata_of,
)

_SERVICE = "/inference.GRPCInferenceService"


class GrpcCalls:
    """So many channels to one server."""

    def __init__(self, options: BenchOptions, channels: int) -> None:
        target, credentials = grpc_target(options), channel_credentials(options)
        self._with: dict[str, Any] = {"metadata": metadata_of(options) or None, "compression": compression_of(options)}
        self._channels: list[Any] = [
            grpc.aio.insecure_channel(target, channel_options(number))
            if credentials is None
            else grpc.aio.secure_channel(target, credentials, channel_options(number))
            for number in range(channels)
        ]

    def unary(self) -> list[Callable[[bytes], Any]]:
        """Return ModelInfer on each channel; it takes and gives bytes."""
        return [partial(channel.unary_unary(f"{_SERVICE}/ModelInfer"), **self._with) for channel in self._channels]

    def streams(self) -> list[Callable[[], Any]]:
        """Return what begins a ModelStreamInfer on each channel."""
        return [
            partial(channel.stream_stream(f"{_SERVICE}/ModelStreamInfer"), **self._with) for channel in self._channels
        ]

    async def close(self) -> None:
        """Hang up."""
        await asyncio.gather(*(channel.close() for channel in self._channels))
