"""Messages between the measuring process and the client processes: length-prefixed MessagePack."""

from __future__ import annotations

import asyncio

import msgspec

from tritonpy_load_generator.figures.snapshot import Snapshot
from tritonpy_load_generator.options import LoadLevel, LoadOptions
from tritonpy_load_generator.target.metadata import TargetDescription


class SetUpCommand(msgspec.Struct, tag=True):
    """Make the inputs; this is client `client_index` of `client_count`."""

    options: LoadOptions
    target: TargetDescription
    client_index: int
    client_count: int


class ConnectCommand(msgspec.Struct, tag=True):
    """Connect for a level, which all clients generate together."""

    level: LoadLevel


class StartCommand(msgspec.Struct, tag=True):
    """Start the load of the connected level at `begin_ns` of the monotonic clock."""

    begin_ns: int


class SnapshotCommand(msgspec.Struct, tag=True):
    """Return the counts since the previous snapshot."""


class StopCommand(msgspec.Struct, tag=True):
    """Stop sending, wait `grace_s` for requests in flight, and close the connections."""

    grace_s: float


class DoneResponse(msgspec.Struct, tag=True):
    """The command succeeded."""


class SnapshotResponse(msgspec.Struct, tag=True):
    """The snapshot that a SnapshotCommand requested."""

    snapshot: Snapshot


class ErrorResponse(msgspec.Struct, tag=True):
    """The command failed."""

    text: str


Command = SetUpCommand | ConnectCommand | StartCommand | SnapshotCommand | StopCommand
Response = DoneResponse | SnapshotResponse | ErrorResponse

_encoder = msgspec.msgpack.Encoder()
_command_decoder = msgspec.msgpack.Decoder(Command)
_response_decoder = msgspec.msgpack.Decoder(Response)


async def read_command(reader: asyncio.StreamReader) -> Command | None:
    """Return the next command; None when the measuring process closed the socket."""
    raw = await _read(reader)
    return None if raw is None else _command_decoder.decode(raw)


async def read_response(reader: asyncio.StreamReader) -> Response | None:
    """Return the next response; None when the client process is gone."""
    raw = await _read(reader)
    return None if raw is None else _response_decoder.decode(raw)


def write(writer: asyncio.StreamWriter, message: Command | Response) -> None:
    """Send a message."""
    raw = _encoder.encode(message)
    writer.write(len(raw).to_bytes(4, "little") + raw)


async def _read(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "little"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
