from __future__ import annotations

from typing import ClassVar

import pytest

from core.tests.runners.workers.fake_worker import model_context
from tritonpy.api.backend import Backend, ModelContext
from tritonpy.api.worker import Launcher
from tritonpy.errors import InvalidArgument
from tritonpy.runners.isolation import isolated, loads_elsewhere


class Plain(Backend):
    pass


class Apart(Backend):
    isolation: ClassVar[str] = "process"


class Choosy(Backend):
    @classmethod
    def isolation_of(cls, model: ModelContext) -> str:
        return "process" if "heavy" in model.parameters else "thread"


class Launching(Apart):
    @classmethod
    def worker_launcher(cls, model: ModelContext) -> Launcher | None:
        raise NotImplementedError


def model(**parameters: str) -> ModelContext:
    context = model_context(None)  # type: ignore[arg-type]
    context.parameters = parameters
    return context


def test_the_backend_chooses_unless_the_model_does() -> None:
    assert [isolated(model(), kind) for kind in (Plain, Apart)] == [False, True]
    assert isolated(model(isolation="process"), Plain)
    assert not isolated(model(isolation="thread"), Apart)
    with pytest.raises(InvalidArgument, match="parameter 'isolation' is 'container'"):
        isolated(model(isolation="container"), Plain)


def test_a_backend_may_choose_for_each_model() -> None:
    assert [isolated(model(**each), Choosy) for each in ({}, {"heavy": "1"})] == [False, True]
    assert not isolated(model(heavy="1", isolation="thread"), Choosy)


def test_only_backends_that_run_in_the_process_themselves_load_there() -> None:
    assert loads_elsewhere(model(), Apart)
    assert not loads_elsewhere(model(isolation="thread"), Apart)
    assert not loads_elsewhere(model(), Launching)
    assert not loads_elsewhere(model(), Plain)
