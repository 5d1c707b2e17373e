from __future__ import annotations

import logging

import pytest

from tritonpy.model_log import LogRecordMessage, write_record

JSON_VALUES = LogRecordMessage(
    "tritonpy.backend",
    logging.WARNING,
    "100% broken",
    "/there/model.py",
    7,
    "a trace",
    {"model": "m", "version": 3},
)


def test_a_record_is_logged_unchanged(caplog: pytest.LogCaptureFixture) -> None:
    write_record(JSON_VALUES)
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == (
        "tritonpy.backend",
        "WARNING",
        "100% broken",
    )
    assert (record.filename, record.lineno) == ("model.py", 7)
    assert (record.model, record.version, record.table) == ("m", 3, "a trace")  # type: ignore[attr-defined]


def test_a_level_that_the_server_does_not_log_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "tritonpy.backend")
    write_record(JSON_VALUES)
    assert not caplog.records
