"""Opens what carries the requests of one level."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tritonpy_bench.inputs.corpus import Corpus
from tritonpy_bench.load.exchange import Carrier
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.facts import TargetFacts
from tritonpy_bench.wire.regions import Regions

MOST_CHANNELS = 8


class Connections:
    """The carriers of one level, `places` of them; `open` connects those that a closed loop needs at once."""

    def __init__(
        self, facts: TargetFacts, options: BenchOptions, corpus: Corpus, regions: Regions | None, places: int
    ) -> None:
        self.carriers: list[Carrier] = []
        self._closers: list[Callable[[], None]] = []
        make = self._http if options.protocol == "http" else self._grpc
        make(facts, options, corpus, regions, places)

    async def open(self) -> None:
        """Connect all of them. Raises OSError."""
        await asyncio.gather(*(carrier.open() for carrier in self.carriers))

    async def close(self) -> None:
        """Give up what is in flight, and hang up."""
        for carrier in self.carriers:
            carrier.close()
        for close in self._closers:
            close()

    def _http(
        self, facts: TargetFacts, options: BenchOptions, corpus: Corpus, regions: Regions | None, places: int
    ) -> None:
        from tritonpy_bench.wire.address import http_address
        from tritonpy_bench.wire.http_carrier import HttpCarrier
        from tritonpy_bench.wire.http_messages import HttpMessages
        from tritonpy_bench.wire.tls import client_context

        address = http_address(options)
        context = client_context(options) if address.tls else None
        messages = HttpMessages(facts, options, corpus, regions)
        self.carriers = [HttpCarrier(number, address, context, messages) for number in range(places)]

    def _grpc(
        self, facts: TargetFacts, options: BenchOptions, corpus: Corpus, regions: Regions | None, places: int
    ) -> None:
        from tritonpy_bench.wire.address import grpc_address
        from tritonpy_bench.wire.grpc_carrier import GrpcCarrier
        from tritonpy_bench.wire.grpc_channel import GrpcChannel
        from tritonpy_bench.wire.grpc_messages import GrpcMessages
        from tritonpy_bench.wire.grpc_stream import GrpcStream, StreamCarrier
        from tritonpy_bench.wire.tls import grpc_client_context

        messages = GrpcMessages(facts, options, corpus, regions)
        address = grpc_address(options)
        context = grpc_client_context(options) if address.tls else None
        method = "ModelStreamInfer" if options.streaming else "ModelInfer"
        channels = [
            GrpcChannel(options, address, context, method)
            for _ in range(min(options.connections or MOST_CHANNELS, max(places, 1)))
        ]
        if not options.streaming:
            self._closers.extend(channel.close for channel in channels)
            self.carriers = [
                GrpcCarrier(number, channels[number % len(channels)], messages) for number in range(places)
            ]
            return
        streams = [GrpcStream(channel, facts.model.decoupled) for channel in channels]
        self._closers.extend(stream.close for stream in streams)
        self._closers.extend(channel.close for channel in channels)
        self.carriers = [StreamCarrier(number, streams[number % len(streams)], messages) for number in range(places)]
