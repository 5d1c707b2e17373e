"""What a server logs: the section `logging` of server.yaml, and its changes at run time."""

from __future__ import annotations

import logging
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

LogFormat = Literal["default", "ISO8601", "json"]


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is logged, how and where; the section `logging` of server.yaml."""

    verbose: Annotated[
        int,
        msgspec.Meta(ge=0, description="0: no verbose lines; higher numbers show more of them."),
    ] = 0
    info: Annotated[bool, msgspec.Meta(description="Log information messages.")] = True
    warning: Annotated[bool, msgspec.Meta(description="Log warnings.")] = True
    error: Annotated[bool, msgspec.Meta(description="Log errors.")] = True
    format: Annotated[
        LogFormat,
        msgspec.Meta(description="Triton's two line formats, or one JSON object per line."),
    ] = "default"
    file: Annotated[
        str, msgspec.Meta(description="Append to this file instead of standard error.")
    ] = ""

    def admits(self, level: int) -> bool:
        """Return whether records of this logging level are written.

        Verbose level n is logging level 11 - n.
        """
        if level >= logging.ERROR:
            return self.error
        if level >= logging.WARNING:
            return self.warning
        if level >= logging.INFO:
            return self.info
        return level > logging.DEBUG - self.verbose

    def threshold(self) -> int:
        """Return the lowest logging level that is written, so that lower ones cost nothing."""
        if self.verbose:
            return max(logging.DEBUG + 1 - self.verbose, 1)
        switches = (
            (self.info, logging.INFO),
            (self.warning, logging.WARNING),
            (self.error, logging.ERROR),
        )
        return next((level for on, level in switches if on), logging.CRITICAL + 1)


class LogChanges(msgspec.Struct, frozen=True):
    """New values of `LogSettings` for a running server; UNSET keeps a value.

    The file cannot be changed.
    """

    verbose: int | UnsetType = UNSET
    info: bool | UnsetType = UNSET
    warning: bool | UnsetType = UNSET
    error: bool | UnsetType = UNSET
    format: LogFormat | UnsetType = UNSET

    def applied_to(self, settings: LogSettings) -> LogSettings:
        """Return `settings` with these changes."""
        named = {
            name: value
            for name, value in msgspec.structs.asdict(self).items()
            if value is not UNSET
        }
        return msgspec.structs.replace(settings, **named)
