"""The load of one level: who sends which request when."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Any

from tritonpy_bench.generation.connection import ConnectionPool, TimedExchange
from tritonpy_bench.generation.options import GenerationOptions
from tritonpy_bench.generation.prompts import Request, request_body
from tritonpy_bench.generation.replies import read_reply
from tritonpy_load_generator.loops.arrivals import constant_arrivals, poisson_arrivals


class GenerationLoad:
    """Sends requests to one server. `exchanges` has all that have begun."""

    def __init__(self, options: GenerationOptions, pool: ConnectionPool, head: bytes) -> None:
        self._options = options
        self._pool = pool
        self._head = head
        self._rng = random.Random(options.seed)  # noqa: S311 - not for security
        self.exchanges: list[TimedExchange] = []
        self.running = 0

    async def run(self, level: float, requests: Sequence[Request]) -> None:
        """Send all requests at a level, and wait for their responses."""
        options = self._options
        self.exchanges = []
        if options.fixed_schedule:
            first = requests[0].at_ms
            await self._open(requests, (int((each.at_ms - first) * 1e6) for each in requests))
        elif options.request_rate_range is not None:
            await self._open(requests, self._arrivals(level))
        elif options.num_sessions:
            await self._sessions(int(level), requests)
        else:
            await self._closed(int(level), requests)

    async def _closed(self, concurrency: int, requests: Sequence[Request]) -> None:
        """Keep a number of requests in flight."""
        bodies = [(each, request_body(self._options, each)) for each in requests]
        waiting = iter(bodies)

        async def client() -> None:
            for request, body in waiting:
                await self._send(request, body)

        await _all(client() for _ in range(min(concurrency, len(bodies))))

    async def _open(self, requests: Sequence[Request], arrivals: Iterator[int]) -> None:
        """Send each request when it is due, whatever the server does."""
        bodies = [(each, request_body(self._options, each)) for each in requests]
        began = time.perf_counter_ns()
        async with asyncio.TaskGroup() as group:
            for (request, body), arrival in zip(bodies, arrivals, strict=False):
                due = began + arrival
                # A sleep ends late: the last millisecond is waited for in small steps.
                while (left := due - time.perf_counter_ns()) > 0:  # noqa: ASYNC110 - a time
                    await asyncio.sleep(left / 1e9 - 0.001 if left > 2_000_000 else 0)
                group.create_task(self._send(request, body, due))

    async def _sessions(self, concurrency: int, requests: Sequence[Request]) -> None:
        """Hold conversations, a number of them at a time."""
        turns = self._options.turns
        waiting = iter(
            [requests[start : start + turns] for start in range(0, len(requests), turns)]
        )

        async def client() -> None:
            for session in waiting:
                messages: list[dict[str, Any]] = []
                for number, request in enumerate(session):
                    if number and self._options.think_time:
                        await asyncio.sleep(self._options.think_time)
                    exchange = await self._send(
                        request, request_body(self._options, request, messages)
                    )
                    reply = read_reply(exchange, streams=self._options.streams)
                    if reply.error:
                        break
                    messages += request.messages or [{"role": "user", "content": request.text}]
                    messages.append({"role": "assistant", "content": reply.text})

        await _all(client() for _ in range(concurrency))

    async def _send(self, request: Request, body: bytes, due_ns: int = 0) -> TimedExchange:
        exchange = TimedExchange(request.output_tokens, due_ns)
        self.exchanges.append(exchange)
        leaves_after_s = None
        if self._rng.random() * 100 < self._options.request_cancellation_rate:
            leaves_after_s = self._options.request_cancellation_delay
        self.running += 1
        try:
            data = self._head % len(body) + body
            await self._pool.exchange(data, exchange, leaves_after_s)
        finally:
            self.running -= 1
        return exchange

    def _arrivals(self, rate: float) -> Iterator[int]:
        options = self._options
        if options.request_distribution == "poisson":
            return poisson_arrivals(rate, options.seed)
        if options.request_distribution == "gamma":
            return self._gamma_arrivals(rate)
        return constant_arrivals(rate)

    def _gamma_arrivals(self, rate: float) -> Iterator[int]:
        """Yield arrivals with gamma-distributed intervals of the shape `burstiness`."""
        shape, at = self._options.burstiness, 0.0
        while True:
            at += self._rng.gammavariate(shape, 1 / (rate * shape))
            yield int(at * 1e9)


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all; the failure of one cancels the others."""
    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(each)
