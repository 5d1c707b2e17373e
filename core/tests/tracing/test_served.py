"""Requests of a real server, traced into files."""

from __future__ import annotations

import json

import pytest

from tritonpy import hookimpl
from tritonpy.frontend import Frontend, LogChanges
from tritonpy.tracing import TraceChanges
from tritonpy_testing import RecordingSink
from tritonpy_types.errors import InvalidArgument, TritonError

from ..repository.version_backend import EventLog, version_reporter, write
from ..toys.serving import ToyPlugin, ask, numbers, serving, toy_plugins


class Keeping(Frontend):
    """A frontend that stores its context."""

    async def start(self, engine):
        """Listen on no port."""


class Keepers:
    @hookimpl
    def tritonpy_frontends(self):
        return {"keeping": Keeping}


@pytest.fixture
def served(model_repository, tmp_path):
    write(model_repository, "m")
    trace = {
        "level": ["TIMESTAMPS"],
        "rate": 1,
        "modes": {"triton": {"file": str(tmp_path / "traces")}},
    }
    plugins = toy_plugins(ToyPlugin({"version_reporter": version_reporter(EventLog())}), Keepers())
    return serving(model_repository, plugins, frontends={"keeping": True}, trace=trace)


def traced(server, recorder, model="m", version=-1):
    trace = server.frontends["keeping"].context.tracer.sample(model, {})
    try:
        request = ask(server.engine, recorder, model, [0], trace=trace, model_version=version)
        (answers,) = recorder.wait(request)
        return numbers(answers)
    finally:
        if trace is not None:
            trace.end()


def test_traces_are_whole_when_the_server_has_ended(served, tmp_path):
    with served as server:
        for _ in range(3):
            traced(server, RecordingSink())
    records = json.loads((tmp_path / "traces").read_text())
    names = [stamp["name"] for record in records for stamp in record.get("timestamps", ())]
    assert names == 3 * [
        "REQUEST_START", "QUEUE_START", "INFER_RESPONSE_COMPLETE", "COMPUTE_START", "COMPUTE_INPUT_END",
        "COMPUTE_OUTPUT_START", "COMPUTE_END", "REQUEST_END",
    ]  # fmt: skip
    assert [record["model_version"] for record in records if "model_name" in record] == [1, 1, 1]


def test_a_refused_request_has_a_trace_without_a_model(served, tmp_path):
    with served as server, pytest.raises(TritonError):
        traced(server, RecordingSink(), version=7)
    assert json.loads((tmp_path / "traces").read_text() or "[]") in ([], None)


def test_settings_of_a_model_that_is_not_ready_are_refused(served):
    with served as server:
        for change in (
            lambda: server.engine.trace_settings("unknown"),
            lambda: server.engine.change_trace_settings(TraceChanges(), "unknown"),
        ):
            with pytest.raises(InvalidArgument) as refused:
                change()
            assert refused.value.message == "Request for unknown model : unknown"
        server.engine.change_trace_settings(TraceChanges(level=[]), "m")
        assert server.frontends["keeping"].context.tracer.sample("m", {}) is None
        assert server.engine.trace_settings("m").level == []


def test_log_settings_are_those_of_the_process(served):
    with served as server:
        server.engine.change_log_settings(LogChanges(verbose=1))
        assert server.engine.log_settings().verbose == 1
        server.engine.change_log_settings(LogChanges(verbose=0))
