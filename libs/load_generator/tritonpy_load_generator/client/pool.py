"""The pool of client processes, in the measuring process."""

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
from tritonpy_load_generator.client.messages import (
    Command,
    ConnectCommand,
    ErrorResponse,
    Response,
    SetUpCommand,
    SnapshotCommand,
    SnapshotResponse,
    StartCommand,
    StopCommand,
    read_response,
    write,
)
from tritonpy_load_generator.figures.snapshot import Snapshot, join_parallel
from tritonpy_load_generator.options import LoadLevel, LoadOptions
from tritonpy_load_generator.target.metadata import TargetDescription

_LEAD_NS = 20_000_000
_TIMEOUT_S = 10.0


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

    async def call(self, command: Command) -> Response:
        write(self._writer, command)
        response = await read_response(self._reader)
        if response is None:
            self._log.seek(0)
            raise StartupError(
                "a client process ended: "
                f"{self._log.read().decode('utf-8', 'replace')[-2000:].strip()}"
            )
        if isinstance(response, ErrorResponse):
            raise StartupError(response.text)
        return response

    async def close(self) -> None:
        self._writer.close()
        try:
            await asyncio.wait_for(self.process.wait(), _TIMEOUT_S)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        self._log.close()


class ClientPool:
    """Client processes that generate one load together; an asynchronous context manager.

    Each process has its own session, so that Ctrl-C reaches the measuring process only. Every
    method raises StartupError if a client process fails.
    """

    def __init__(self, target: TargetDescription, options: LoadOptions) -> None:
        self._target = target
        self._options = options
        self._clients: list[_Client] = []

    async def __aenter__(self) -> ClientPool:
        client_count = self._options.client_processes
        try:
            for _ in range(client_count):
                self._clients.append(await _start_client())
            await self._each(
                [
                    SetUpCommand(self._options, self._target, client_index, client_count)
                    for client_index in range(client_count)
                ]
            )
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(client.close() for client in self._clients))
        self._clients.clear()

    async def start(self, level: LoadLevel) -> None:
        """Connect, then start the load in all processes at the same time."""
        await self._all(ConnectCommand(level))
        await self._all(StartCommand(time.monotonic_ns() + _LEAD_NS))

    async def take_snapshot(self) -> Snapshot:
        """Return the joined counts of all clients since the previous snapshot."""
        replies = await self._all(SnapshotCommand())
        return join_parallel(
            [response.snapshot for response in replies if isinstance(response, SnapshotResponse)]
        )

    async def stop(self, grace_s: float) -> None:
        """Stop the load; requests in flight have `grace_s` seconds to finish."""
        await self._all(StopCommand(grace_s))

    async def _all(self, command: Command) -> list[Response]:
        return await self._each([command] * len(self._clients))

    async def _each(self, commands: Sequence[Command]) -> list[Response]:
        waiting = [
            asyncio.ensure_future(client.call(command))
            for client, command in zip(self._clients, commands, strict=True)
        ]
        try:
            return await asyncio.gather(*waiting)
        except BaseException:
            for task in waiting:
                task.cancel()
            with contextlib.suppress(BaseException):
                await asyncio.gather(*waiting, return_exceptions=True)
            raise


async def _start_client() -> _Client:
    ours, theirs = socket.socketpair()
    log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the client
    with theirs:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tritonpy_load_generator.client.worker",
            str(theirs.fileno()),
            pass_fds=[theirs.fileno()],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 26)
    return _Client(process, reader, writer, log)
