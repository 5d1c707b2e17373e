"""Connections and request senders of one level."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tritonpy_load_generator.inputs.corpus import Corpus
from tritonpy_load_generator.loops.exchange import RequestSender
from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.target.metadata import TargetDescription
from tritonpy_load_generator.wire.regions import ClientRegions

MAX_CHANNELS = 8


class Connections:
    """The `slot_count` request senders of one level and their connections."""

    def __init__(
        self,
        target: TargetDescription,
        options: LoadOptions,
        corpus: Corpus,
        regions: ClientRegions | None,
        slot_count: int,
    ) -> None:
        self.senders: list[RequestSender] = []
        self._closers: list[Callable[[], None]] = []
        make = self._http if options.protocol == "http" else self._grpc
        make(target, options, corpus, regions, slot_count)

    async def open(self) -> None:
        """Connect all senders, as a closed loop needs at its start. Raises OSError."""
        await asyncio.gather(*(sender.open() for sender in self.senders))

    async def close(self) -> None:
        """Cancel the requests in flight and close all connections."""
        for sender in self.senders:
            sender.close()
        for close in self._closers:
            close()

    def _http(
        self,
        target: TargetDescription,
        options: LoadOptions,
        corpus: Corpus,
        regions: ClientRegions | None,
        slot_count: int,
    ) -> None:
        from tritonpy_load_generator.wire.address import http_address
        from tritonpy_load_generator.wire.http_messages import HttpMessages
        from tritonpy_load_generator.wire.http_sender import HttpSender
        from tritonpy_load_generator.wire.tls import https_client_context

        address = http_address(options)
        context = https_client_context(options) if address.tls else None
        messages = HttpMessages(target, options, corpus, regions)
        self.senders = [
            HttpSender(number, address, context, messages) for number in range(slot_count)
        ]

    def _grpc(
        self,
        target: TargetDescription,
        options: LoadOptions,
        corpus: Corpus,
        regions: ClientRegions | None,
        slot_count: int,
    ) -> None:
        from tritonpy_load_generator.wire.address import grpc_address
        from tritonpy_load_generator.wire.grpc_channel import GrpcChannel
        from tritonpy_load_generator.wire.grpc_messages import GrpcMessages
        from tritonpy_load_generator.wire.grpc_sender import GrpcSender
        from tritonpy_load_generator.wire.grpc_stream import GrpcStream, StreamSender
        from tritonpy_load_generator.wire.tls import grpc_client_context

        messages = GrpcMessages(target, options, corpus, regions)
        address = grpc_address(options)
        context = grpc_client_context(options) if address.tls else None
        method = "ModelStreamInfer" if options.streaming else "ModelInfer"
        channels = [
            GrpcChannel(options, address, context, method)
            for _ in range(min(options.connections or MAX_CHANNELS, max(slot_count, 1)))
        ]
        if not options.streaming:
            self._closers.extend(channel.close for channel in channels)
            self.senders = [
                GrpcSender(number, channels[number % len(channels)], messages)
                for number in range(slot_count)
            ]
            return
        streams = [GrpcStream(channel, target.model.decoupled) for channel in channels]
        self._closers.extend(stream.close for stream in streams)
        self._closers.extend(channel.close for channel in channels)
        self.senders = [
            StreamSender(number, streams[number % len(streams)], messages)
            for number in range(slot_count)
        ]
