"""Log records that models and other processes write through the server."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

import msgspec

from tritonpy.api.contexts import InstanceContext, ModelContext

_LEVELS = {
    "VERBOSE": logging.DEBUG,
    "INFO": logging.INFO,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
}


class LogRecordMessage(msgspec.Struct):
    """A log record; `table` is multi-line text for verbatim output, `fields` are log fields."""

    logger: str
    level: int
    message: str
    file: str
    line: int
    table: str = ""
    fields: dict[str, str | int] = {}


def write_record(record: LogRecordMessage) -> None:
    """Log `record` under its logger if the log settings of this process allow it."""
    log = logging.getLogger(record.logger)
    if not log.isEnabledFor(record.level):
        return
    fields: dict[str, object] = dict(record.fields)
    if record.table:
        fields["table"] = record.table
    log.handle(
        log.makeRecord(
            record.logger,
            record.level,
            record.file,
            record.line,
            "%s",
            (record.message,),
            None,
            extra=fields,
        )
    )


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
        self._fields: dict[str, str | int] = {
            "model": model.name,
            "version": model.version,
            "instance": instance.name,
        }

    def write(self, message: LogLineMessage) -> None:
        """Log a line of a worker."""
        self.log(message.level, message.message, message.requests, message.file, message.line)

    def log(
        self, level: str, message: str, requests: Sequence[str] = (), file: str = "", line: int = 0
    ) -> None:
        """Log a line of the level INFO, WARNING, ERROR or VERBOSE.

        The arguments are as in `LogLineMessage`.
        """
        ids = ", ".join(each for each in requests if each)
        fields = self._fields | {"request_id": ids} if ids else self._fields
        write_record(
            LogRecordMessage(
                "tritonpy.model", _LEVELS[level], message, file or self._name, line, fields=fields
            )
        )
