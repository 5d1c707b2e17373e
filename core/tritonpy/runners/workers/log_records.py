"""Log records from worker processes."""

from __future__ import annotations

import logging

import msgspec


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
            record.logger, record.level, record.file, record.line, "%s", (record.message,), None, extra=fields
        )
    )
