from __future__ import annotations

from typing import ClassVar

import pytest

from core.tests.runners.workers.fake_worker import model_context
from tritonpy.api.backend import Backend, ModelContext
from tritonpy.api.worker import Launcher
from tritonpy.errors import InvalidArgument
from tritonpy.runners.isolation import is_isolated, loads_in_worker


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
    assert [is_isolated(model(), kind) for kind in (Plain, Apart)] == [False, True]
    assert is_isolated(model(isolation="process"), Plain)
    assert not is_isolated(model(isolation="thread"), Apart)
    with pytest.raises(InvalidArgument, match="parameter 'isolation' is 'container'"):
        is_isolated(model(isolation="container"), Plain)


def test_a_backend_may_choose_for_each_model() -> None:
    assert [is_isolated(model(**each), Choosy) for each in ({}, {"heavy": "1"})] == [False, True]
    assert not is_isolated(model(heavy="1", isolation="thread"), Choosy)


def test_only_backends_with_the_default_launcher_load_in_the_worker() -> None:
    assert loads_in_worker(model(), Apart)
    assert not loads_in_worker(model(isolation="thread"), Apart)
    assert not loads_in_worker(model(), Launching)
    assert not loads_in_worker(model(), Plain)
