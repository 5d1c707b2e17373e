"""The log lines of a model's own code."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

import msgspec

from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.runners.workers.log_records import RecordSaid, write_record

_LEVELS = {"VERBOSE": logging.DEBUG, "INFO": logging.INFO, "WARNING": logging.WARNING, "ERROR": logging.ERROR}


class LineSaid(msgspec.Struct):
    """One line: `requests` are the ids of the requests that are being executed, `file` and `line` where the model says it."""

    level: Literal["VERBOSE", "INFO", "WARNING", "ERROR"]
    message: str
    requests: list[str] = []
    file: str = ""
    line: int = 0


class ModelLog:
    """Writes lines under the logger `tritonpy.model`, with the model's name and version, its instance and the requests' ids."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        self._name = instance.name
        self._fields: dict[str, str | int] = {"model": model.name, "version": model.version, "instance": instance.name}

    def write(self, said: LineSaid) -> None:
        """Write a line that a worker said."""
        self.say(said.level, said.message, said.requests, said.file, said.line)

    def say(self, level: str, message: str, requests: Sequence[str] = (), file: str = "", line: int = 0) -> None:
        """Write a line of the level INFO, WARNING, ERROR or VERBOSE, where the server's settings admit it; for the rest see `LineSaid`."""
        ids = ", ".join(each for each in requests if each)
        fields = self._fields | {"request_id": ids} if ids else self._fields
        write_record(RecordSaid("tritonpy.model", _LEVELS[level], message, file or self._name, line, fields=fields))
