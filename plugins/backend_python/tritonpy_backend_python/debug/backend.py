"""The backend `python` of the debug command's server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from tritonpy import Backend, Batch, InvalidArgument, ModelContext, Unavailable, hookimpl
from tritonpy_backend_python.backend import PythonBackend
from tritonpy_backend_python.debug.instance import DebuggedInstance, perform
from tritonpy_backend_python.debug.report import Reporter
from tritonpy_backend_python.debug.stage import Stage
from tritonpy_backend_python.in_process.admission import environment_wishes
from tritonpy_backend_python.in_process.completion import auto_complete
from tritonpy_backend_python.in_process.instance import LocalInstance
from tritonpy_backend_python.in_process.shares import LocalShares

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


@dataclass(slots=True)
class Debugging:
    """What the backend and the session share: the model that is debugged, and how far it is.

    `any_interpreter`: it runs here, whatever environment it names.
    """

    name: str
    any_interpreter: bool
    stage: Stage
    reporter: Reporter
    loaded: bool = False
    ending: Event = field(default_factory=Event)


class DebugPlugin:
    """Stands in for this package in the server of the debug command."""

    def __init__(self, session: Debugging) -> None:
        self._session = session

    @hookimpl
    def tritonpy_backends(self) -> Mapping[str, type[Backend]]:
        """Register the backend that debugs one model and serves others as ever."""
        return {"python": debugging_backend(self._session)}


def debugging_backend(session: Debugging) -> type[PythonBackend]:
    """Return the Python backend, but for one model, which has one instance and that in the main thread."""

    class DebuggingBackend(PythonBackend):
        @classmethod
        def auto_complete(cls, model: ModelContext) -> ModelConfig:
            if model.name != session.name:
                return super().auto_complete(model)
            _check(session, model)
            return perform(session.stage, session.reporter, partial(auto_complete, model, prints_to_log=False))

        @classmethod
        def load(cls, model: ModelContext) -> object:
            if model.name != session.name:
                return super().load(model)
            _check(session, model)
            session.loaded = True
            model.parameters = {**model.parameters, "isolation": "thread"}
            _keep_one_instance(model.config)
            return LocalShares()

        def _begin(self) -> LocalInstance:
            if self.model.name != session.name:
                return super()._begin()
            return DebuggedInstance(session.stage, session.reporter, self.model, self.instance)

        def execute(self, batch: Batch) -> None:
            if session.ending.is_set() and self.model.name == session.name:
                raise Unavailable("the debugger was left")
            super().execute(batch)

    return DebuggingBackend


def _check(session: Debugging, model: ModelContext) -> None:
    wishes = environment_wishes(model)
    if wishes and not session.any_interpreter:
        raise InvalidArgument(
            f"model '{model.name}' runs in an environment of its own ({', '.join(wishes)}), where tritonpy is not installed: it cannot be "
            "debugged there. Make an environment that has what the model needs and tritonpy (Python 3.11 or newer), start this command in "
            "it and add --this-interpreter; or serve the model as it is and let it wait for a debugger that connects to its process, "
            "such as debugpy."
        )


def _keep_one_instance(config: ModelConfig) -> None:
    group = next(group for group in config.instance_group if not group.passive)
    group.count = 1
    del group.gpus[1:]
    kept = type(group)()
    kept.CopyFrom(group)
    del config.instance_group[:]
    config.instance_group.append(kept)
