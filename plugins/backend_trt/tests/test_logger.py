from __future__ import annotations

import logging
import threading

import pytest

from tritonpy_backend_trt.logger import collect_errors, get_logger, last_error, log_message


@pytest.mark.parametrize(
    ("severity", "level"),
    [
        ("INTERNAL_ERROR", "ERROR"),
        ("ERROR", "ERROR"),
        ("WARNING", "WARNING"),
        ("INFO", "INFO"),
        ("VERBOSE", "DEBUG"),
    ],
)
def test_tensorrts_messages_are_logged(simulation, caplog, severity, level):
    caplog.set_level(logging.DEBUG)
    get_logger(simulation.trt).log(simulation.trt.ILogger.Severity[severity], "100 % sure")
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("tritonpy.tensorrt", level, "100 % sure")
    ]


def test_there_is_one_logger_for_the_process(simulation):
    assert get_logger(simulation.trt) is get_logger(simulation.trt)


def test_errors_are_collected_per_thread():
    log_message("ERROR", "before")
    with collect_errors() as outer:
        log_message("ERROR", "first")
        with collect_errors() as inner:
            log_message("WARNING", "not an error")
            log_message("INTERNAL_ERROR", "second")
        other = threading.Thread(target=log_message, args=("ERROR", "elsewhere"))
        other.start()
        other.join()
        log_message("ERROR", "third")
    log_message("ERROR", "after")
    assert (outer, inner) == (["first", "third"], ["second"])
    assert last_error(outer) == "third"
    assert last_error([]) == "TensorRT reported no reason"
