from __future__ import annotations

from typing import ClassVar

import pytest

from plugins.workers.tests.fake_worker import model_context
from tritonpy.api.backend import Backend
from tritonpy.api.contexts import ModelContext
from tritonpy.api.worker import Launcher
from tritonpy.hookspecs import hookimpl
from tritonpy.plugins import PluginManager, make_plugin_manager
from tritonpy.repository import builtin
from tritonpy.runners.isolation import RunnerFactories, is_isolated, loads_in_worker
from tritonpy.runners.local import LocalRunnerFactory
from tritonpy_testing import RunnerFactoryContract
from tritonpy_types.errors import InvalidArgument, PluginError


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


def test_a_backend_may_choose_for_each_model() -> None:
    assert [is_isolated(model(**each), Choosy) for each in ({}, {"heavy": "1"})] == [False, True]
    assert not is_isolated(model(heavy="1", isolation="thread"), Choosy)


def test_only_backends_with_the_default_launcher_load_in_the_worker() -> None:
    assert loads_in_worker(model(), Apart)
    assert not loads_in_worker(model(isolation="thread"), Apart)
    assert not loads_in_worker(model(), Launching)
    assert not loads_in_worker(model(), Plain)


class Container(LocalRunnerFactory):
    """Records that it was closed."""

    closed = False

    def close(self) -> None:
        Container.closed = True


class Containers:
    @staticmethod
    @hookimpl
    def tritonpy_runners() -> dict[str, type[Container]]:
        return {"container": Container}


def plugins(*more: object) -> PluginManager:
    manager = make_plugin_manager(discover=False)
    for number, plugin in enumerate((builtin, *more)):
        manager.register(plugin, str(number))
    return manager


def test_an_unknown_runner_is_rejected_with_the_known_names() -> None:
    factories = RunnerFactories(plugins(), None)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgument,
        match=r"parameter 'isolation' is 'container'; expected \"process\" or \"thread\"$",
    ):
        factories.get(model(isolation="container"), Plain)


def test_a_runner_that_is_not_installed_names_its_package() -> None:
    factories = RunnerFactories(plugins(), None)  # type: ignore[arg-type]
    with pytest.raises(
        PluginError, match=r"no plugin provides runner 'process': .*tritonpy-workers"
    ):
        factories.check(model(), Apart)


def test_a_factory_is_opened_once_and_closed_with_the_server() -> None:
    factories = RunnerFactories(plugins(Containers), None)  # type: ignore[arg-type]
    first = factories.get(model(isolation="container"), Plain)
    assert type(first) is Container
    assert factories.get(model(isolation="container"), Apart) is first
    factories.close()
    assert Container.closed


class TestThread(RunnerFactoryContract):
    plugin_class = LocalRunnerFactory
    plugin = builtin
    name = "thread"
    installed = True
