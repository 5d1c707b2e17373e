"""What a frontend process is told to run: the content of its START frame."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tritonpy.api.claim import Claim
from tritonpy.config.server import ServerConfig
from tritonpy.errors import StartupError
from tritonpy.ipc import VERSION
from tritonpy.logs import LogSettings


class TracerState(msgspec.Struct, frozen=True):
    """What a frontend has to know of the tracer: whether any request may be traced, and which headers say that one is."""

    active: bool
    headers: tuple[str, ...]


class ClaimSaid(msgspec.Struct):
    """A `Claim` without its socket; `listens`: that is among the descriptors, in the order of the claims."""

    address: str
    port: int
    listens: bool


class Start(msgspec.Struct):
    """One process, the `index`th of the server's. `search` is the server's list of places for modules, `config` server.yaml's content."""

    version: int
    index: int
    search: list[str]
    config: dict[str, Any]
    kept_headers: list[str]
    claims: dict[str, ClaimSaid]
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
    ) -> Start:
        """Describe a process that serves the frontends that `claims` names."""
        said = {
            name: ClaimSaid(claim.address, claim.port, claim.listening is not None) for name, claim in claims.items()
        }
        plain = msgspec.to_builtins(config)
        return cls(VERSION, index, list(sys.path), plain, list(kept_headers), said, logging, tracer)

    @classmethod
    def read(cls, extras: Mapping[str, Any]) -> Start:
        """Return what a frame says. Raises StartupError for one of another version of the server."""
        if extras.get("version") != VERSION:
            raise StartupError(
                f"the server speaks version {extras.get('version')} of its protocol, the frontend process version {VERSION}: "
                "was tritonpy replaced while it ran?"
            )
        return msgspec.convert(extras, cls)
