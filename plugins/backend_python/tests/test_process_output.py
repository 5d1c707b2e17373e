"""Output of a process without an instance."""

from __future__ import annotations

import logging
import os

import pytest

from tritonpy_backend_python.process_output import ProcessOutput


def test_lines_are_logged_and_the_last_ones_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    read, write = os.pipe()
    with caplog.at_level("INFO"):
        printed = ProcessOutput(read, logging.LoggerAdapter(logging.getLogger("test.printed")))
        os.write(write, b"".join(b"line %d\n" % number for number in range(50)) + b"\n\xff no end")
        os.close(write)
        printed.wait(60)
    assert [record.message for record in caplog.records][:2] == ["line 0", "line 1"]
    assert list(printed.tail)[-1] == "\\xff no end"
    assert len(printed.tail) == 20


def test_waiting_for_a_pipe_that_stays_open_ends() -> None:
    read, write = os.pipe()
    printed = ProcessOutput(read, logging.LoggerAdapter(logging.getLogger("test.printed")))
    printed.wait(0.01)
    os.close(write)
    printed.wait(60)
