"""A client process: `python -m tritonpy_bench.client.worker DESCRIPTOR` takes orders from the socket that it inherited."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys

import uvloop

from tritonpy import StartupError
from tritonpy_bench.client.load import Load
from tritonpy_bench.client.messages import (
    Connect,
    Counted,
    Done,
    Go,
    Look,
    Order,
    Reply,
    SetUp,
    Stop,
    Trouble,
    read_order,
    write,
)
from tritonpy_bench.inputs.corpus import make_corpus


class Worker:
    """Does what it is told, one order at a time."""

    def __init__(self) -> None:
        self._set_up: SetUp | None = None
        self._load: Load | None = None

    async def run(self, descriptor: int) -> None:
        """Obey until nobody gives orders any more."""
        reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
        while (order := await read_order(reader)) is not None:
            try:
                reply = await self._obey(order)
            except (OSError, StartupError) as error:
                reply = Trouble(str(error) or type(error).__name__)
            write(writer, reply)
        if self._load is not None:  # who gave orders is gone: memory and sequences are not left behind
            await self._load.stop(0)
        writer.close()

    async def _obey(self, order: Order) -> Reply:
        match order:
            case SetUp():
                self._set_up = order
                self._corpus = make_corpus(order.facts.model, order.options)
                gc.collect()
                gc.freeze()  # what lives as long as the process is not looked through again and again
            case Connect(level):
                assert self._set_up is not None  # noqa: S101  it is the first order
                told = self._set_up
                self._load = Load(told.facts, told.options, self._corpus, level, told.hand, told.hands)
                await self._load.connect()
            case _ if self._load is None:
                raise StartupError("no level is open")
            case Go(begin_ns):
                self._load.go(begin_ns)
            case Look():
                return Counted(self._load.look())
            case Stop(grace_s):
                load, self._load = self._load, None
                await load.stop(grace_s)
        return Done()


def main() -> None:
    """Run until the other end hangs up."""
    uvloop.run(Worker().run(int(sys.argv[1])))


if __name__ == "__main__":
    main()
