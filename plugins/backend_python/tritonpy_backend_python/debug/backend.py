"""The backend `python` of the debug command's server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from tritonpy import Backend, Batch, InvalidArgument, ModelContext, Unavailable, hookimpl
from tritonpy_backend_python.backend import PythonBackend
from tritonpy_backend_python.debug.instance import DebuggedInstance, run_and_report
from tritonpy_backend_python.debug.main_thread import MainThread
from tritonpy_backend_python.debug.report import Reporter
from tritonpy_backend_python.in_process.completion import auto_complete
from tritonpy_backend_python.in_process.instance import LocalInstance
from tritonpy_backend_python.in_process.restrictions import environment_requirements
from tritonpy_backend_python.in_process.shared_arrays import LocalSharedArrays

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


@dataclass(slots=True)
class DebugState:
    """State that the backend and the session share.

    `name` is the debugged model. With `any_interpreter`, it runs in this interpreter even if it
    requires another environment.
    """

    name: str
    any_interpreter: bool
    main_thread: MainThread
    reporter: Reporter
    loaded: bool = False
    stop_event: Event = field(default_factory=Event)


class DebugPlugin:
    """Replaces this package's plugin in the server of the debug command."""

    def __init__(self, session: DebugState) -> None:
        self._session = session

    @hookimpl
    def tritonpy_backends(self) -> Mapping[str, type[Backend]]:
        """Return the backend that debugs one model and serves others as usual."""
        return {"python": debugging_backend(self._session)}


def debugging_backend(session: DebugState) -> type[PythonBackend]:
    """Return a Python backend that runs the debugged model with one instance in the main thread."""

    class DebuggingBackend(PythonBackend):
        @classmethod
        def auto_complete(cls, model: ModelContext) -> ModelConfig:
            if model.name != session.name:
                return super().auto_complete(model)
            _check(session, model)
            return run_and_report(
                session.main_thread,
                session.reporter,
                partial(auto_complete, model, prints_to_log=False),
            )

        @classmethod
        def load(cls, model: ModelContext) -> object:
            if model.name != session.name:
                return super().load(model)
            _check(session, model)
            session.loaded = True
            model.parameters = {**model.parameters, "isolation": "thread"}
            _keep_one_instance(model.config)
            return LocalSharedArrays()

        def _begin(self) -> LocalInstance:
            if self.model.name != session.name:
                return super()._begin()
            return DebuggedInstance(
                session.main_thread, session.reporter, self.model, self.instance
            )

        def execute(self, batch: Batch) -> None:
            if session.stop_event.is_set() and self.model.name == session.name:
                raise Unavailable("the debugger was quit")
            super().execute(batch)

    return DebuggingBackend


def _check(session: DebugState, model: ModelContext) -> None:
    requirements = environment_requirements(model)
    if requirements and not session.any_interpreter:
        raise InvalidArgument(
            f"model '{model.name}' runs in its own environment ({', '.join(requirements)}), "
            "where tritonpy is not installed, so it cannot be "
            "debugged there. Create an environment with the model's packages and tritonpy "
            "(Python 3.11 or newer), run this command in "
            "it and add --this-interpreter; or serve the model and attach a debugger such as "
            "debugpy to its process."
        )


def _keep_one_instance(config: ModelConfig) -> None:
    group = next(group for group in config.instance_group if not group.passive)
    group.count = 1
    del group.gpus[1:]
    kept = type(group)()
    kept.CopyFrom(group)
    del config.instance_group[:]
    config.instance_group.append(kept)
