from __future__ import annotations

import json
import re

import pytest

from plugins.workers.tests.fake_worker import model_context
from tritonpy.api.contexts import InstanceContext
from tritonpy.frontend import LogSettings
from tritonpy.logs import configure_logging
from tritonpy.model_log import LogLineMessage, ModelLog
from tritonpy_testing.toy_engine import ToyEngine


@pytest.fixture
def model_log():
    return ModelLog(model_context(ToyEngine([])), InstanceContext("caller_0_1", "CPU", 0, 1))


def test_a_line_of_text_shows_the_model_and_the_requests(model_log, capsys):
    configure_logging(LogSettings())
    model_log.write(LogLineMessage("WARNING", "100 % sure", ["7", "", "8"], "model.py", 12))
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r'W\S+ \S+ \d+ model\.py:12\] "\[model: caller\] \[request id: 7, 8\] 100 % sure"', line
    )


def test_a_line_without_a_location_shows_its_instance(model_log, capsys):
    configure_logging(LogSettings())
    model_log.write(LogLineMessage("ERROR", "text"))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith('caller_0_1:0] "[model: caller] text"')


def test_a_json_line_has_model_version_instance_and_request(model_log, capsys):
    configure_logging(LogSettings(format="json"))
    model_log.write(LogLineMessage("INFO", "text", ["7"]))
    line = json.loads(capsys.readouterr().err)
    assert {**line, "time": ""} == {
        "time": "",
        "level": "INFO",
        "logger": "tritonpy.model",
        "message": "text",
        "model": "caller",
        "version": 1,
        "instance": "caller_0_1",
        "request_id": "7",
    }


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (LogSettings(), ["INFO", "WARNING", "ERROR"]),
        (LogSettings(verbose=1), ["VERBOSE", "INFO", "WARNING", "ERROR"]),
        (LogSettings(info=False, error=False), ["WARNING"]),
    ],
)
def test_the_servers_settings_decide_which_lines_are_logged(model_log, capsys, settings, kept):
    configure_logging(settings)
    for level in ("VERBOSE", "INFO", "WARNING", "ERROR"):
        model_log.write(LogLineMessage(level, f"<{level}>"))
    assert re.findall("<(.*)>", capsys.readouterr().err) == kept
