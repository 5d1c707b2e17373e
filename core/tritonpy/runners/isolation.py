"""Where the instances of a model execute: the choice of a runner, and runner factories."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import ModelContext
from tritonpy.plugins.manager import PluginManager
from tritonpy.runners.runner import RunnerFactory, RunnerServices
from tritonpy_types.errors import InvalidArgument

PARAMETER = "isolation"
HOOK = "tritonpy_runners"
_THREAD = "thread"
_KNOWN = ("process", _THREAD)  # "process" has a package, whether it is installed or not


def chosen_runner(model: ModelContext, backend: type[Backend]) -> str:
    """Return the name of the runner factory for `model`.

    The model's parameter takes precedence over the backend's default.
    """
    return (
        model.parameters[PARAMETER]
        if PARAMETER in model.parameters
        else backend.isolation_of(model)
    )


def is_isolated(model: ModelContext, backend: type[Backend]) -> bool:
    """Return whether the instances of `model` run outside of this process."""
    return chosen_runner(model, backend) != _THREAD


def loads_in_worker(model: ModelContext, backend: type[Backend]) -> bool:
    """Return whether each worker loads the model itself, so that this process must not load it.

    A backend with its own launcher decides what `load` does in this process.
    """
    launcher: Any = backend.worker_launcher
    default: Any = Backend.worker_launcher
    return is_isolated(model, backend) and launcher.__func__ is default.__func__


class RunnerFactories:
    """The runner factories of one server. Each is opened when the first model needs it."""

    def __init__(self, plugins: PluginManager, services: RunnerServices) -> None:
        self._plugins = plugins
        self._services = services
        self._opening = threading.Lock()
        self._open: dict[str, RunnerFactory] = {}

    def get(self, model: ModelContext, backend: type[Backend]) -> RunnerFactory:
        """Return the factory that `model` has chosen.

        Raises `InvalidArgument` for an unknown name, `PluginError` if its package is not installed.
        """
        self.check(model, backend)
        name = chosen_runner(model, backend)
        with self._opening:
            if name not in self._open:
                self._open[name] = self._plugins.get(HOOK, name, "runner").load()(self._services)
            return self._open[name]

    def check(self, model: ModelContext, backend: type[Backend]) -> None:
        """Raise the error of `get` for a wrong choice, without opening a factory."""
        name, table = chosen_runner(model, backend), self._table()
        if name in _KNOWN:
            self._plugins.get(HOOK, name, "runner")
        elif name not in table:
            *names, last = (f'"{each}"' for each in sorted({*table, *_KNOWN}))
            expected = f"{', '.join(names)} or {last}"
            raise InvalidArgument(
                f"model '{model.name}': parameter '{PARAMETER}' is '{name}'; expected {expected}"
            )

    def close(self) -> None:
        """Close every factory; all models must be unloaded."""
        for factory in self._open.values():
            factory.close()

    def _table(self) -> Mapping[str, object]:
        return self._plugins.table(HOOK)
