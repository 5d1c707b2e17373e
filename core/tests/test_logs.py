from __future__ import annotations

import fcntl
import io
import json
import logging
import os
import pty
import re
import struct
import sys
import termios
import threading

import pytest

from tritonpy import StartupError
from tritonpy.logs import (
    LogChanges,
    LogSettings,
    change_logging,
    configure_logging,
    follow_log_settings,
    log_settings,
    log_uncaught_exceptions,
    terminal_columns,
)

LOG = logging.getLogger("tritonpy.test")


@pytest.fixture
def lines(capsys):
    def read():
        return capsys.readouterr().err.splitlines()

    return read


def log_every_level():
    for level in (9, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        LOG.log(level, "level %d", level)


def test_the_default_line_is_that_of_triton(lines):
    configure_logging(LogSettings())
    LOG.warning('a "quoted" text')
    (line,) = lines()
    assert re.fullmatch(
        r'W\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ test_logs\.py:\d+\] "a \\"quoted\\" text"', line
    )


def test_the_iso8601_line_is_that_of_triton(lines):
    configure_logging(LogSettings(format="ISO8601"))
    LOG.error("text")
    (line,) = lines()
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ E \d+ test_logs\.py:\d+\] "text"', line)


def test_a_json_line_has_the_fields_of_the_record(lines):
    configure_logging(LogSettings(format="json"))
    LOG.info(
        "text",
        extra={
            "model": "m",
            "version": 2,
            "instance": "m_0_1",
            "request_id": "7",
            "other": object(),
        },
    )
    (line,) = lines()
    found = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", found.pop("time"))
    assert found == {
        "level": "INFO",
        "logger": "tritonpy.test",
        "message": "text",
        "model": "m",
        "version": 2,
        "instance": "m_0_1",
        "request_id": "7",
    }


def test_a_json_line_contains_models_instead_of_the_table(lines):
    configure_logging(LogSettings(format="json"))
    models = [{"name": "m", "version": "1", "state": "READY", "reason": ""}]
    LOG.info("models:", extra={"table": "+---+", "models": models})
    found = json.loads(lines()[0])
    assert found["models"] == models
    assert "table" not in found


@pytest.mark.parametrize(
    ("value", "escaped"), [("0", False), ("1", True), ("false", True), ("", True)]
)
@pytest.mark.parametrize("log_format", ["default", "ISO8601"])
def test_messages_are_escaped_unless_triton_s_variable_is_0(
    lines, monkeypatch, value, escaped, log_format
):
    monkeypatch.setenv("TRITON_SERVER_ESCAPE_LOG_MESSAGES", value)
    configure_logging(LogSettings(format=log_format))
    LOG.info('one "two"\n\tthree')
    first, *others = lines()
    if escaped:
        assert first.endswith('] "one \\"two\\"\\n\\tthree"')
        assert others == []
    else:
        assert first.endswith('] one "two"')
        assert others == ["\tthree"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)

    def replace():  # replaced by the test itself, since pytest's capture replaces it earlier
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return replace


def test_heads_of_lines_have_the_color_of_their_level_on_a_terminal(terminal):
    stream = terminal()
    configure_logging(LogSettings())
    for level in (logging.INFO, logging.WARNING, logging.ERROR):
        LOG.log(level, "text")
    colors = [
        re.fullmatch(r'\x1b\[(\d+)m[IWE]\d{4} .*\]\x1b\[0m "text"', line)
        for line in stream.getvalue().splitlines()
    ]
    assert [found[1] for found in colors] == ["2", "33", "31"]


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colors_can_be_switched_off(terminal, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    stream = terminal()
    configure_logging(LogSettings())
    LOG.error("text")
    assert "\x1b" not in stream.getvalue()


def test_an_empty_no_color_has_no_effect(terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "")
    stream = terminal()
    configure_logging(LogSettings())
    LOG.error("text")
    assert "\x1b" in stream.getvalue()


@pytest.mark.parametrize("settings", [{"file": "log"}, {"format": "json"}])
def test_log_files_and_json_lines_have_no_colors(terminal, tmp_path, settings):
    if "file" in settings:
        settings = {"file": str(tmp_path / "log")}
    stream = terminal()
    configure_logging(LogSettings(**settings))
    LOG.error("text")
    written = stream.getvalue() + "".join(path.read_text() for path in tmp_path.iterdir())
    assert "text" in written
    assert "\x1b" not in written
    configure_logging(LogSettings())


def test_without_a_terminal_there_are_no_colors_and_no_columns(lines):
    configure_logging(LogSettings())
    LOG.error("text")
    assert "\x1b" not in lines()[0]
    assert terminal_columns() == 0


def test_the_columns_are_those_of_the_terminal(monkeypatch):
    controller, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 77, 0, 0))
    with os.fdopen(follower, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert terminal_columns() == 77
    os.close(controller)


def test_the_model_precedes_the_request_id(lines):
    configure_logging(LogSettings())
    LOG.info("text", extra={"model": "m", "version": 1, "instance": "m_0_0"})
    LOG.info("text", extra={"model": "m", "request_id": "7"})
    assert [line.partition("] ")[2] for line in lines()] == [
        '"[model: m] text"',
        '"[model: m] [request id: 7] text"',
    ]


def test_the_request_id_precedes_the_text_once(lines):
    configure_logging(LogSettings())
    LOG.info("text", extra={"request_id": "7"})
    LOG.info("[request id: 7] text", extra={"request_id": "7"})
    assert [line.partition("] ")[2] for line in lines()] == ['"[request id: 7] text"'] * 2


@pytest.mark.parametrize("log_format", ["default", "ISO8601", "json"])
def test_a_message_cannot_start_a_new_line(lines, log_format):
    configure_logging(LogSettings(format=log_format))
    LOG.info("one\nE1121 forged \udc80")
    assert len(lines()) == 1


def test_a_table_follows_its_line(lines):
    configure_logging(LogSettings())
    LOG.info("models:", extra={"table": "+---+\n| a |"})
    assert lines()[0].endswith('"models:"')
    configure_logging(LogSettings(format="json"))
    LOG.info("models:", extra={"table": "+---+\n| a |"})
    (line,) = lines()
    assert json.loads(line)["table"] == "+---+\n| a |"


@pytest.mark.parametrize(
    ("settings", "levels"),
    [
        (LogSettings(), [20, 30, 40, 50]),
        (LogSettings(info=False), [30, 40, 50]),
        (LogSettings(warning=False), [20, 40, 50]),
        (LogSettings(error=False), [20, 30]),
        (LogSettings(info=False, warning=False, error=False), []),
        (LogSettings(verbose=1), [10, 20, 30, 40, 50]),
        (LogSettings(verbose=2, info=False), [9, 10, 30, 40, 50]),
        (LogSettings(verbose=99, info=False, warning=False, error=False), [9, 10]),
    ],
)
def test_each_level_has_its_own_switch(lines, settings, levels):
    configure_logging(settings)
    log_every_level()
    assert [int(re.search(r"level (\d+)", line)[1]) for line in lines()] == levels
    assert LOG.isEnabledFor(logging.INFO) == any(level <= logging.INFO for level in levels)


def test_settings_can_be_changed_while_the_server_runs(lines, tmp_path):
    handler = configure_logging(LogSettings())
    LOG.info("to the console")
    assert configure_logging(LogSettings(file=str(tmp_path / "log"))) is handler
    LOG.info("to the file")
    configure_logging(LogSettings())
    LOG.info("to the console again")
    assert [line.partition("] ")[2] for line in lines()] == [
        '"to the console"',
        '"to the console again"',
    ]
    assert (tmp_path / "log").read_text().endswith('"to the file"\n')


def test_a_log_file_is_appended_to(tmp_path):
    file = tmp_path / "log"
    file.write_text("before\n")
    configure_logging(LogSettings(file=str(file)))
    LOG.info("after \udc80")
    first, second = file.read_text().splitlines()
    assert first == "before"
    assert second.endswith('"after \\udc80"')


def test_an_unwritable_log_file_raises_and_changes_nothing(lines, tmp_path):
    configure_logging(LogSettings())
    with pytest.raises(StartupError, match=r"cannot write the log file '.*': Is a directory"):
        configure_logging(LogSettings(file=str(tmp_path), info=False))
    LOG.info("still here")
    assert len(lines()) == 1


def test_libraries_log_their_warnings_in_the_same_format(lines):
    configure_logging(LogSettings())
    logging.getLogger("some.library").warning("text")
    logging.getLogger("some.library").info("text")
    (line,) = lines()
    assert line.startswith("W")


def test_an_exception_is_logged_with_its_traceback(lines):
    configure_logging(LogSettings())
    try:
        int("odd")
    except ValueError:
        LOG.exception("failed")
    first, *traceback = lines()
    assert first.endswith('"failed"')
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1] == "ValueError: invalid literal for int() with base 10: 'odd'"


def test_uncaught_exceptions_are_logged_once(lines, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    configure_logging(LogSettings(format="json"))
    log_uncaught_exceptions()
    thread = threading.Thread(target=lambda: 1 // 0, name="worker")
    thread.start()
    thread.join()
    error = ValueError("odd")
    sys.excepthook(ValueError, error, None)
    in_thread, in_main = map(json.loads, lines())
    assert in_thread["message"].startswith("uncaught exception in worker: ZeroDivisionError")
    assert in_thread["exception"].startswith("Traceback (most recent call last):")
    assert in_main["message"] == "uncaught exception: ValueError('odd')"


def test_verbose_lines_start_like_info_lines(lines):
    configure_logging(LogSettings(verbose=2))
    log_every_level()
    assert [line[0] for line in lines()] == ["I", "I", "I", "W", "E", "E"]


def test_changes_apply_from_the_next_line_on(lines):
    configure_logging(LogSettings())
    change_logging(LogChanges(info=False, format="ISO8601"))
    log_every_level()
    assert [line.split()[1] for line in lines()] == ["W", "E", "E"]
    change_logging(LogChanges(info=True, verbose=1))
    log_every_level()
    assert [line.split()[1] for line in lines()] == ["I", "I", "W", "E", "E"]
    assert log_settings() == LogSettings(verbose=1, format="ISO8601")


def test_changes_keep_the_file(tmp_path):
    file = tmp_path / "log"
    configure_logging(LogSettings(file=str(file)))
    change_logging(LogChanges(verbose=1))
    LOG.debug("a verbose line")
    assert log_settings().file == str(file)
    assert "a verbose line" in file.read_text()


def test_with_other_handlers_only_the_level_changes(caplog):
    handlers = list(logging.getLogger().handlers)
    change_logging(LogChanges(info=False, warning=False))
    log_every_level()
    assert [record.levelname for record in caplog.records] == ["ERROR", "CRITICAL"]
    change_logging(LogChanges(info=True, warning=True))
    assert log_settings() == LogSettings()
    assert logging.getLogger().handlers == handlers


def test_followers_receive_each_change_until_they_end_that():
    received = []
    end = follow_log_settings(received.append)
    try:
        change_logging(LogChanges(verbose=3))
        end()
        change_logging(LogChanges(verbose=0))
    finally:
        change_logging(LogChanges(verbose=0))
    assert [settings.verbose for settings in received] == [3]


@pytest.mark.parametrize("log_format", ["default", "json"])
def test_the_middle_of_long_messages_and_tracebacks_is_left_out(lines, log_format):
    configure_logging(LogSettings(format=log_format))
    error = ValueError("x" * 5_000_000 + "the " + "end")
    LOG.error("failed: %s", error, exc_info=error)
    text = "".join(lines())
    assert len(text) < 80_000
    assert "characters left out" in text
    assert text.count("the end") == 2
