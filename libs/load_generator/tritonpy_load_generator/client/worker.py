"""A client process: `python -m tritonpy_load_generator.client.worker DESCRIPTOR`.

It executes the commands that arrive on the inherited socket DESCRIPTOR.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import sys

import uvloop

from tritonpy import StartupError
from tritonpy_load_generator.client.load import ClientLoad
from tritonpy_load_generator.client.messages import (
    Command,
    ConnectCommand,
    DoneResponse,
    ErrorResponse,
    Response,
    SetUpCommand,
    SnapshotCommand,
    SnapshotResponse,
    StartCommand,
    StopCommand,
    read_command,
    write,
)
from tritonpy_load_generator.inputs.corpus import make_corpus


class LoadWorker:
    """Executes the commands of the measuring process in order."""

    def __init__(self) -> None:
        self._set_up: SetUpCommand | None = None
        self._load: ClientLoad | None = None

    async def run(self, descriptor: int) -> None:
        """Execute commands until the measuring process closes the socket."""
        reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
        while (command := await read_command(reader)) is not None:
            try:
                response = await self._execute(command)
            except (OSError, StartupError) as error:
                response = ErrorResponse(str(error) or type(error).__name__)
            write(writer, response)
        if self._load is not None:  # the measuring process is gone: free memory and end sequences
            await self._load.stop(0)
        writer.close()

    async def _execute(self, command: Command) -> Response:
        match command:
            case SetUpCommand():
                self._set_up = command
                self._corpus = make_corpus(command.target.model, command.options)
                gc.collect()
                gc.freeze()  # the collector skips objects that live as long as the process
            case ConnectCommand(level):
                assert self._set_up is not None  # noqa: S101  SetUpCommand comes first
                setup = self._set_up
                self._load = ClientLoad(
                    setup.target,
                    setup.options,
                    self._corpus,
                    level,
                    setup.client_index,
                    setup.client_count,
                )
                await self._load.connect()
            case _ if self._load is None:
                raise StartupError("no level is connected")
            case StartCommand(begin_ns):
                self._load.go(begin_ns)
            case SnapshotCommand():
                return SnapshotResponse(self._load.take_snapshot())
            case StopCommand(grace_s):
                load, self._load = self._load, None
                await load.stop(grace_s)
        return DoneResponse()


def main() -> None:
    """Run until the measuring process closes the socket."""
    uvloop.run(LoadWorker().run(int(sys.argv[1])))


if __name__ == "__main__":
    main()
