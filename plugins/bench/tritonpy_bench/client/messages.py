"""What the measuring process and the client processes say to each other: MessagePack, each message behind its length."""

from __future__ import annotations

import asyncio

import msgspec

from tritonpy_bench.figures.snapshot import Snapshot
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.facts import TargetFacts


class SetUp(msgspec.Struct, tag=True):
    """Make the inputs; this is client `hand` of `hands`."""

    options: BenchOptions
    facts: TargetFacts
    hand: int
    hands: int


class Connect(msgspec.Struct, tag=True):
    """Open what a level needs: a concurrency, or a rate in requests per second, of all clients together."""

    level: float


class Go(msgspec.Struct, tag=True):
    """Begin the load of the level that was opened; an open loop counts its arrivals from `begin_ns` of the monotonic clock."""

    begin_ns: int


class Look(msgspec.Struct, tag=True):
    """Say what was counted since the last look."""


class Stop(msgspec.Struct, tag=True):
    """Begin no more requests, wait `grace_s` for those in flight, and hang up."""

    grace_s: float


class Done(msgspec.Struct, tag=True):
    """What was asked is done."""


class Counted(msgspec.Struct, tag=True):
    """The answer to a look."""

    snapshot: Snapshot


class Trouble(msgspec.Struct, tag=True):
    """It cannot be done."""

    text: str


Order = SetUp | Connect | Go | Look | Stop
Reply = Done | Counted | Trouble

_encoder = msgspec.msgpack.Encoder()
_orders = msgspec.msgpack.Decoder(Order)
_replies = msgspec.msgpack.Decoder(Reply)


async def read_order(reader: asyncio.StreamReader) -> Order | None:
    """Return the next order; None when nobody gives any more."""
    raw = await _read(reader)
    return None if raw is None else _orders.decode(raw)


async def read_reply(reader: asyncio.StreamReader) -> Reply | None:
    """Return the next reply; None when the client process is gone."""
    raw = await _read(reader)
    return None if raw is None else _replies.decode(raw)


def write(writer: asyncio.StreamWriter, message: Order | Reply) -> None:
    """Send a message."""
    raw = _encoder.encode(message)
    writer.write(len(raw).to_bytes(4, "little") + raw)


async def _read(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "little"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
