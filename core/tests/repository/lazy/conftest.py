from __future__ import annotations

import pytest

from tritonpy_testing import RecordingSink

from ...toys.ensemble import EnsembleScheduler
from ...toys.hoard import HeldMemory, memory_backend
from ...toys.serving import ToyPlugin, ask, numbers, serving, toy_plugins


@pytest.fixture
def hoard():
    return HeldMemory()


@pytest.fixture
def recorder():
    return RecordingSink()


@pytest.fixture
def serve(model_repository, hoard):
    """Serve the repository of the test with models that hoard; `memory` is the section of server.yaml."""

    def start(*, mode="none", load=(), backends=None, schedulers=None, memory=None, **settings):
        found = ToyPlugin(
            {"hoarder": memory_backend(hoard)} | (backends or {}),
            {"ensemble": EnsembleScheduler} | (schedulers or {}),
        )
        control = {"mode": mode, "load": list(load)} | settings.pop("control", {})
        section = {"lazy": ["*"], "wait_s": 20} | (memory or {})
        return serving(
            model_repository, toy_plugins(found), control=control, memory=section, **settings
        )

    return start


@pytest.fixture
def infer(recorder):
    """Send a request to a model and return the result; raises its error."""

    def get(server, model_report, value=1, **fields):
        (responses,) = recorder.wait(
            ask(server.engine, recorder, model_report, [value], **fields), timeout_s=20
        )
        ((number,),) = numbers(responses)
        return number

    return get


def memory_report(server):
    """Return the server's report on memory."""
    (report,) = (
        handler
        for operation, handler in server._repository.operations().items()
        if operation.name == "memory"
    )
    return report(None)


def model_report(server, name):
    """Return the server's report on one model."""
    return next(one for one in memory_report(server)["models"] if one["name"] == name)
