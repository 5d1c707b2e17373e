from __future__ import annotations

import pytest

from tritonpy.testing import Witness

from ...toys.ensemble import EnsembleScheduler
from ...toys.hoard import Hoard, hoarder
from ...toys.serving import ToyPlugin, ask, numbers, serving, toy_plugins


@pytest.fixture
def hoard():
    return Hoard()


@pytest.fixture
def witness():
    return Witness()


@pytest.fixture
def serve(model_repository, hoard):
    """Serve the repository of the test with models that hoard; `memory` is the section of server.yaml."""

    def start(*, mode="none", load=(), backends=None, schedulers=None, memory=None, **settings):
        found = ToyPlugin(
            {"hoarder": hoarder(hoard)} | (backends or {}), {"ensemble": EnsembleScheduler} | (schedulers or {})
        )
        control = {"mode": mode, "load": list(load)} | settings.pop("control", {})
        section = {"lazy": ["*"], "wait_s": 20} | (memory or {})
        return serving(model_repository, toy_plugins(found), control=control, memory=section, **settings)

    return start


@pytest.fixture
def answered(witness):
    """Ask a model, wait for the answer and return it; raises the error that it was answered."""

    def get(server, model, value=1, **fields):
        (answers,) = witness.wait(ask(server.engine, witness, model, [value], **fields), timeout_s=20)
        ((number,),) = numbers(answers)
        return number

    return get


def told(server):
    """Return what the server says of its memory."""
    return server._repository.memory()


def model(server, name):
    """Return what the server says of one model."""
    return next(one for one in told(server)["models"] if one["name"] == name)
