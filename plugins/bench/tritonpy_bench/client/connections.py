"""Opens what carries the requests of one level."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

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
        self._closers: list[Callable[[], Any]] = []
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
            closing = close()
            if closing is not None:
                await closing

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
        from tritonpy_bench.wire.grpc_calls import GrpcCalls
        from tritonpy_bench.wire.grpc_carrier import GrpcCarrier
        from tritonpy_bench.wire.grpc_messages import GrpcMessages
        from tritonpy_bench.wire.grpc_stream import GrpcStream, StreamCarrier

        messages = GrpcMessages(facts, options, corpus, regions)
        calls = GrpcCalls(options, min(options.connections or MOST_CHANNELS, max(places, 1)))
        self._closers.append(calls.close)
        if not options.streaming:
            unary = calls.unary()
            self.carriers = [GrpcCarrier(number, unary[number % len(unary)], messages) for number in range(places)]
            return
        streams = [GrpcStream(begin, facts.model.decoupled) for begin in calls.streams()]
        self._closers[:0] = [stream.close for stream in streams]
        self.carriers = [StreamCarrier(number, streams[number % len(streams)], messages) for number in range(places)]
