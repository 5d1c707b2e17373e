from __future__ import annotations

import logging
import os

import pytest

from tritonpy_frontend_envoy.launching.envoy_log import EnvoyLog


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    log = EnvoyLog(reading)
    with os.fdopen(writing, "wb", buffering=0) as end:
        yield log, end
    log.close()


def test_envoys_lines_are_lines_of_our_log(pipe, caplog):
    log, end = pipe
    with caplog.at_level(logging.DEBUG, "tritonpy.envoy"):
        end.write(b"envoy|warning|a | b\nenvoy|critical|worse\nenvoy|info|no")
        assert log.read()
        end.write(b"te\nenvoy|trace|small\n")
        assert log.read()
    told = [(record.levelno, record.getMessage()) for record in caplog.records]
    expected = [(logging.WARNING, "a | b"), (logging.ERROR, "worse"), (logging.INFO, "note"), (logging.DEBUG, "small")]
    assert told == expected
    assert log.last == "worse"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("408|127.0.0.1:1|request_header_timeout", "127.0.0.1:1: The request took too long to arrive (request_header_timeout)"),
        ("503|[::1]:1|a|b", "[::1]:1: status 503 (a|b)"),
        ("400", ": Invalid HTTP request received. ()"),
    ],
)  # fmt: skip
def test_a_refusal_is_told_in_our_words(pipe, caplog, line, told):
    log, end = pipe
    end.write(f"envoy|refused|{line}\n".encode())
    assert log.read()
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.WARNING, f"refused a request from {told}")
    assert log.last == ""


def test_what_others_write_passes_as_it_is(pipe, capsys, caplog):
    log, end = pipe
    end.write(b"from a model\n\xff\n")
    log.read()
    assert capsys.readouterr().err == "from a model\n\\xff\n"
    assert caplog.records == []


def test_the_last_line_counts_though_it_has_no_end(pipe, capsys):
    log, end = pipe
    end.write(b"half")
    assert log.read()
    end.close()
    assert not log.read()
    assert capsys.readouterr().err == "half\n"


def test_a_line_without_end_does_not_fill_the_memory(pipe, capsys):
    log, end = pipe
    for _ in range(3):
        end.write(b"x" * 60_000)
        log.read()
    assert len(capsys.readouterr().err) > 60_000
