"""The START message: what a frontend process runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tritonpy import StartupError
from tritonpy.config import ServerConfig
from tritonpy.frontend import Claim, LogSettings
from tritonpy_ipc import VERSION


class TracerState(msgspec.Struct, frozen=True):
    """The tracer's state for frontends: whether requests may be traced, and by which headers."""

    active: bool
    headers: tuple[str, ...]


class ClaimMessage(msgspec.Struct):
    """A `Claim` without its socket.

    If `listens`, the socket is among the descriptors, in the order of the claims.
    """

    address: str
    port: int
    listens: bool


class StartMessage(msgspec.Struct):
    """The data that a frontend process starts with.

    `index` is the number of the process, `search` the server's `sys.path`, `config` the content of
    server.yaml.
    """

    version: int
    index: int
    search: list[str]
    config: dict[str, Any]
    kept_headers: list[str]
    claims: dict[str, ClaimMessage]
    logging: LogSettings
    tracer: TracerState

    @classmethod
    def of(
        cls,
        index: int,
        config: ServerConfig,
        kept_headers: Sequence[str],
        claims: Mapping[str, Claim],
        logging: LogSettings,
        tracer: TracerState,
    ) -> StartMessage:
        """Return the message for a process that serves the frontends of `claims`."""
        message = {
            name: ClaimMessage(claim.address, claim.port, claim.listening is not None)
            for name, claim in claims.items()
        }
        plain = msgspec.to_builtins(config)
        return cls(
            VERSION, index, list(sys.path), plain, list(kept_headers), message, logging, tracer
        )

    @classmethod
    def read(cls, extras: Mapping[str, Any]) -> StartMessage:
        """Return the message of a frame. Raises StartupError for another version of the server."""
        if extras.get("version") != VERSION:
            raise StartupError(
                f"the server uses protocol version {extras.get('version')}, "
                f"the frontend process version {VERSION}: "
                "was tritonpy replaced while the server ran?"
            )
        return msgspec.convert(extras, cls)
