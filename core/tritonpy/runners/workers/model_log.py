"""Log lines of a model's own code."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

import msgspec

from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.runners.workers.log_records import LogRecordMessage, write_record

_LEVELS = {"VERBOSE": logging.DEBUG, "INFO": logging.INFO, "WARNING": logging.WARNING, "ERROR": logging.ERROR}


class LogLineMessage(msgspec.Struct):
    """A log line with the ids of the requests in execution and its place in the source."""

    level: Literal["VERBOSE", "INFO", "WARNING", "ERROR"]
    message: str
    requests: list[str] = []
    file: str = ""
    line: int = 0


class ModelLog:
    """Logs to `tritonpy.model` with model, version, instance and the ids of the requests."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        self._name = instance.name
        self._fields: dict[str, str | int] = {"model": model.name, "version": model.version, "instance": instance.name}

    def write(self, message: LogLineMessage) -> None:
        """Log a line of a worker."""
        self.log(message.level, message.message, message.requests, message.file, message.line)

    def log(self, level: str, message: str, requests: Sequence[str] = (), file: str = "", line: int = 0) -> None:
        """Log a line of the level INFO, WARNING, ERROR or VERBOSE.

        The arguments are as in `LogLineMessage`.
        """
        ids = ", ".join(each for each in requests if each)
        fields = self._fields | {"request_id": ids} if ids else self._fields
        write_record(
            LogRecordMessage("tritonpy.model", _LEVELS[level], message, file or self._name, line, fields=fields)
        )
