"""The client processes, from the side of the one that measures."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO

from tritonpy import StartupError
from tritonpy_bench.client.messages import (
    Connect,
    Counted,
    Go,
    Look,
    Order,
    Reply,
    SetUp,
    Stop,
    Trouble,
    read_reply,
    write,
)
from tritonpy_bench.figures.snapshot import Snapshot, side_by_side
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.facts import TargetFacts

_LEAD_NS = 20_000_000
_PATIENCE_S = 10.0


class _Client:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        log: IO[bytes],
    ) -> None:
        self.process = process
        self._reader = reader
        self._writer = writer
        self._log = log

    async def ask(self, order: Order) -> Reply:
        write(self._writer, order)
        reply = await read_reply(self._reader)
        if reply is None:
            self._log.seek(0)
            raise StartupError(f"a client process ended: {self._log.read().decode('utf-8', 'replace')[-2000:].strip()}")
        if isinstance(reply, Trouble):
            raise StartupError(reply.text)
        return reply

    async def close(self) -> None:
        self._writer.close()
        try:
            await asyncio.wait_for(self.process.wait(), _PATIENCE_S)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        self._log.close()


class ClientPool:
    """So many processes that make one load together; use it as an asynchronous context manager.

    They are sessions of their own: Ctrl-C ends the measurement, which then ends them. Every method raises StartupError where one of them cannot go on.
    """

    def __init__(self, facts: TargetFacts, options: BenchOptions) -> None:
        self._facts = facts
        self._options = options
        self._clients: list[_Client] = []

    async def __aenter__(self) -> ClientPool:
        hands = self._options.client_processes
        try:
            for _ in range(hands):
                self._clients.append(await _started())
            await self._each([SetUp(self._options, self._facts, hand, hands) for hand in range(hands)])
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(client.close() for client in self._clients))
        self._clients.clear()

    async def start(self, level: float) -> None:
        """Connect, then begin in all processes at the same moment."""
        await self._all(Connect(level))
        await self._all(Go(time.monotonic_ns() + _LEAD_NS))

    async def look(self) -> Snapshot:
        """Return what all of them counted since the last look."""
        replies = await self._all(Look())
        return side_by_side([reply.snapshot for reply in replies if isinstance(reply, Counted)])

    async def stop(self, grace_s: float) -> None:
        """End the level's load; what is in flight has `grace_s` seconds."""
        await self._all(Stop(grace_s))

    async def _all(self, order: Order) -> list[Reply]:
        return await self._each([order] * len(self._clients))

    async def _each(self, orders: Sequence[Order]) -> list[Reply]:
        asking = [asyncio.ensure_future(client.ask(order)) for client, order in zip(self._clients, orders, strict=True)]
        try:
            return await asyncio.gather(*asking)
        except BaseException:
            for task in asking:
                task.cancel()
            with contextlib.suppress(BaseException):
                await asyncio.gather(*asking, return_exceptions=True)
            raise


async def _started() -> _Client:
    ours, theirs = socket.socketpair()
    log = tempfile.TemporaryFile()  # noqa: SIM115  it is closed with the client
    with theirs:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tritonpy_bench.client.worker",
            str(theirs.fileno()),
            pass_fds=[theirs.fileno()],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 26)
    return _Client(process, reader, writer, log)
