from __future__ import annotations

import logging

import pytest

from core.tests.toys.isolated import ISOLATED, ContextReporter, ContextReporterOptions, isolating
from core.tests.toys.serving import ToyPlugin, ask
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink

CONFIG = """
    backend: "tuned"
    input { name: "IN" data_type: TYPE_INT32 dims: 1 }
    output { name: "OUT" data_type: TYPE_STRING dims: -1 }
    instance_group { count: 2 kind: KIND_CPU }
    parameters { key: "colour" value { string_value: "blue" } }
"""


def test_contexts_are_equal_in_process_and_server(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tritonpy")
    payload = {}
    for name, more in (("there", ISOLATED), ("here", "")):
        alone = CONFIG.replace("count: 2", "count: 1")  # the response shows which instance executed
        folder = model_repository.add(
            name, alone + more, versions={3: {"weights.txt": "some weights"}}
        )
        recorder = RecordingSink()
        settings = {
            "backends": {"tuned": {"scale-by": 7, "names": ["a", "b"]}},
            "backend_defaults": {},
        }
        with isolating(
            model_repository, ToyPlugin({"tuned": ContextReporter}), **settings
        ) as server:
            ((answer,),) = recorder.wait(ask(server.engine, recorder, name, [1]))
        payload[name] = [each.decode() for each in answer.outputs[0].strings()]
        assert (folder / "3" / "closed.txt").read_text() == "closed"
        model_repository.remove(name)
    there, here = (
        [line.replace(name, "NAME") for line in payload[name]] for name in ("there", "here")
    )
    isolation = [line for line in there if "isolation" in line]
    assert [
        line.replace("'isolation': 'process', ", "").replace(", 'isolation': 'process'", "")
        for line in there
    ] == here
    assert len(isolation) == 1
    assert repr(ContextReporterOptions(7, ("a", "b"))) in there


def test_logs_of_the_backend_are_logged_by_the_server_with_their_fields(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tritonpy")
    model_repository.add("there", CONFIG + ISOLATED, versions={3: {"weights.txt": "some weights"}})
    with isolating(model_repository, ToyPlugin({"tuned": ContextReporter})):
        pass
    opened = [record for record in caplog.records if record.getMessage() == "opened"]
    unloaded = [record for record in caplog.records if record.name == "a.library"]
    assert len(opened) == 2  # one instance per process
    assert all(
        (each.name, each.levelno, each.filename)
        == ("tritonpy.backend", logging.INFO, "isolated.py")
        for each in opened
    )
    assert all((each.model, each.version) == ("there", 3) for each in opened)  # type: ignore[attr-defined]
    assert [each.getMessage() for each in unloaded] == [
        "unloaded {'opened': 'some weights', 'by': 'triton'}"
    ] * 2
