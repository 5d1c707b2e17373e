from __future__ import annotations

import logging
import threading

import pytest

from tritonpy_backend_trt.logger import heard, listening, logger_of, reason


@pytest.mark.parametrize(
    ("severity", "level"),
    [("INTERNAL_ERROR", "ERROR"), ("ERROR", "ERROR"), ("WARNING", "WARNING"), ("INFO", "INFO"), ("VERBOSE", "DEBUG")],
)
def test_what_tensorrt_says_goes_to_the_log(simulation, caplog, severity, level):
    caplog.set_level(logging.DEBUG)
    logger_of(simulation.trt).log(simulation.trt.ILogger.Severity[severity], "100 % sure")
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("tritonpy.tensorrt", level, "100 % sure")
    ]


def test_there_is_one_logger_for_the_process(simulation):
    assert logger_of(simulation.trt) is logger_of(simulation.trt)


def test_errors_of_the_own_thread_are_heard_while_somebody_listens():
    heard("ERROR", "before")
    with listening() as outer:
        heard("ERROR", "first")
        with listening() as inner:
            heard("WARNING", "not an error")
            heard("INTERNAL_ERROR", "second")
        other = threading.Thread(target=heard, args=("ERROR", "elsewhere"))
        other.start()
        other.join()
        heard("ERROR", "third")
    heard("ERROR", "after")
    assert (outer, inner) == (["first", "third"], ["second"])
    assert reason(outer) == "third"
    assert reason([]) == "TensorRT gave no reason"
