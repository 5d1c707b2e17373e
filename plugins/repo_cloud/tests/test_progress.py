from __future__ import annotations

import io
import logging
import sys

import pytest

from tritonpy_repo_cloud import progress as module
from tritonpy_repo_cloud.progress import format_bytes, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("byte_size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 kB"),
        (2.5e6, "2.5 MB"),
        (1e10, "10 GB"),
        (3e15, "3e+03 TB"),
    ],
)
def test_sizes_are_readable(byte_size, text):
    assert format_bytes(byte_size) == text


def test_a_terminal_shows_a_bar_that_is_cleared_for_log_lines(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    handlers = list(logging.getLogger().handlers)
    with progress("model", 1000, 250) as reporter:
        reporter.add(500)
        before = terminal.tell()
        logging.getLogger("tritonpy").warning("a line")
        assert "\r" in terminal.getvalue()[before:]
    assert "model" in terminal.getvalue()
    assert "25%" in terminal.getvalue()
    assert logging.getLogger().handlers == handlers


def test_without_a_terminal_progress_is_logged(caplog, monkeypatch):
    caplog.set_level(logging.INFO, "tritonpy")
    times = iter([0.0, 1.0, 11.0, 12.0, 22.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(times))
    with progress("model", 1000, 200) as reporter:
        for _ in range(4):
            reporter.add(200)
    assert [record.message for record in caplog.records] == [
        "fetching 'model': 60 % of 1 kB, 36.4 B/s",
        "fetching 'model': 100 % of 1 kB, 36.4 B/s",
    ]
