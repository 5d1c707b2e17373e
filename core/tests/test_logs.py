from __future__ import annotations

import json
import logging
import re
import sys
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
)

LOG = logging.getLogger("tritonpy.test")


@pytest.fixture
def lines(capsys):
    def read():
        return capsys.readouterr().err.splitlines()

    return read


def everything():
    for level in (9, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        LOG.log(level, "level %d", level)


def test_the_default_line_is_that_of_triton(lines):
    configure_logging(LogSettings())
    LOG.warning('a "quoted" text')
    (line,) = lines()
    assert re.fullmatch(r'W\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ test_logs\.py:\d+\] "a \\"quoted\\" text"', line)


def test_the_iso8601_line_is_that_of_triton(lines):
    configure_logging(LogSettings(format="ISO8601"))
    LOG.error("text")
    (line,) = lines()
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ E \d+ test_logs\.py:\d+\] "text"', line)


def test_a_json_line_has_the_fields_of_the_record(lines):
    configure_logging(LogSettings(format="json"))
    LOG.info("text", extra={"model": "m", "version": 2, "instance": "m_0_1", "request_id": "7", "other": object()})
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


def test_the_model_stands_before_the_request_id(lines):
    configure_logging(LogSettings())
    LOG.info("text", extra={"model": "m", "version": 1, "instance": "m_0_0"})
    LOG.info("text", extra={"model": "m", "request_id": "7"})
    assert [line.partition("] ")[2] for line in lines()] == ['"[model: m] text"', '"[model: m] [request id: 7] text"']


def test_the_request_id_stands_before_the_text_once(lines):
    configure_logging(LogSettings())
    LOG.info("text", extra={"request_id": "7"})
    LOG.info("[request id: 7] text", extra={"request_id": "7"})
    assert [line.partition("] ")[2] for line in lines()] == ['"[request id: 7] text"'] * 2


@pytest.mark.parametrize("log_format", ["default", "ISO8601", "json"])
def test_a_text_cannot_start_a_line_of_its_own(lines, log_format):
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
    everything()
    assert [int(re.search(r"level (\d+)", line)[1]) for line in lines()] == levels
    assert LOG.isEnabledFor(logging.INFO) == any(level <= logging.INFO for level in levels)


def test_settings_can_be_changed_while_the_server_runs(lines, tmp_path):
    handler = configure_logging(LogSettings())
    LOG.info("to the console")
    assert configure_logging(LogSettings(file=str(tmp_path / "log"))) is handler
    LOG.info("to the file")
    configure_logging(LogSettings())
    LOG.info("to the console again")
    assert [line.partition("] ")[2] for line in lines()] == ['"to the console"', '"to the console again"']
    assert (tmp_path / "log").read_text().endswith('"to the file"\n')


def test_a_log_file_is_appended_to(tmp_path):
    file = tmp_path / "log"
    file.write_text("before\n")
    configure_logging(LogSettings(file=str(file)))
    LOG.info("after \udc80")
    first, second = file.read_text().splitlines()
    assert first == "before"
    assert second.endswith('"after \\udc80"')


def test_a_log_file_that_cannot_be_written_is_a_clear_error_and_changes_nothing(lines, tmp_path):
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


def test_verbose_lines_begin_as_informations_do(lines):
    configure_logging(LogSettings(verbose=2))
    everything()
    assert [line[0] for line in lines()] == ["I", "I", "I", "W", "E", "E"]


def test_changes_are_followed_from_the_next_line_on(lines):
    configure_logging(LogSettings())
    change_logging(LogChanges(info=False, format="ISO8601"))
    everything()
    assert [line.split()[1] for line in lines()] == ["W", "E", "E"]
    change_logging(LogChanges(info=True, verbose=1))
    everything()
    assert [line.split()[1] for line in lines()] == ["I", "I", "W", "E", "E"]
    assert log_settings() == LogSettings(verbose=1, format="ISO8601")


def test_changes_keep_the_file(tmp_path):
    file = tmp_path / "log"
    configure_logging(LogSettings(file=str(file)))
    change_logging(LogChanges(verbose=1))
    LOG.debug("a verbose line")
    assert log_settings().file == str(file)
    assert "a verbose line" in file.read_text()


def test_in_a_program_with_its_own_handlers_the_level_follows_alone(caplog):
    handlers = list(logging.getLogger().handlers)
    change_logging(LogChanges(info=False, warning=False))
    everything()
    assert [record.levelname for record in caplog.records] == ["ERROR", "CRITICAL"]
    change_logging(LogChanges(info=True, warning=True))
    assert log_settings() == LogSettings()
    assert logging.getLogger().handlers == handlers


def test_who_follows_the_settings_hears_of_each_change_until_it_ends_that():
    heard = []
    end = follow_log_settings(heard.append)
    try:
        change_logging(LogChanges(verbose=3))
        end()
        change_logging(LogChanges(verbose=0))
    finally:
        change_logging(LogChanges(verbose=0))
    assert [settings.verbose for settings in heard] == [3]
