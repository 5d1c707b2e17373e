"""Log records that were made in a worker process."""

from __future__ import annotations

import logging

import msgspec


class RecordSaid(msgspec.Struct):
    """One record; `table` is text of several lines that is written as it is, `fields` are those of the server's log."""

    logger: str
    level: int
    message: str
    file: str
    line: int
    table: str = ""
    fields: dict[str, str | int] = {}


def write_record(said: RecordSaid) -> None:
    """Log it under its own name, where the settings of this process admit it."""
    log = logging.getLogger(said.logger)
    if not log.isEnabledFor(said.level):
        return
    fields: dict[str, object] = dict(said.fields)
    if said.table:
        fields["table"] = said.table
    log.handle(log.makeRecord(said.logger, said.level, said.file, said.line, "%s", (said.message,), None, extra=fields))
