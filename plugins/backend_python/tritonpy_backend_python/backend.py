"""The class of the backend `python`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tritonpy import Backend, Batch, InstanceContext, ModelContext
from tritonpy.config import config_from_json, config_to_dict
from tritonpy.execution import Launcher
from tritonpy_backend_python.arguments import check_name
from tritonpy_backend_python.environments.execution_environment import (
    PARAMETER as EXECUTION_ENVIRONMENT,
)
from tritonpy_backend_python.launcher import PythonLauncher
from tritonpy_backend_python.model_code import ModelCode
from tritonpy_backend_python.options import PythonOptions

if TYPE_CHECKING:
    from tritonpy_backend_python.in_process.instance import LocalInstance
    from tritonpy_protos.model_config_pb2 import ModelConfig


class PythonBackend(Backend):
    """Runs model.py files as Triton's Python backend does.

    An object of this class is an instance in the server's process (`isolation: "thread"`). Worker
    processes need no object.
    """

    Options = PythonOptions
    default_filenames = ("model.py",)
    isolation = "process"
    model_parameters = ("EXECUTION_ENV_PATH", "PYTHON_VERSION", "FORCE_CPU_ONLY_INPUT_TENSORS")
    path_parameters = (EXECUTION_ENVIRONMENT,)

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        check_name(model.name)
        if cls._is_local(model):
            from tritonpy_backend_python.in_process.completion import auto_complete
            from tritonpy_backend_python.in_process.restrictions import check_supported

            check_supported(model)
            return auto_complete(model)
        model.shared = code = ModelCode(model)
        completed = code.template().auto_complete(json.dumps(config_to_dict(model.config)))
        return config_from_json(completed, f"auto_complete_config of model '{model.name}'")

    @classmethod
    def load(cls, model: ModelContext) -> object:
        check_name(model.name)
        if cls._is_local(model):
            from tritonpy_backend_python.in_process.restrictions import check_supported
            from tritonpy_backend_python.in_process.shared_arrays import LocalSharedArrays

            check_supported(model)
            return LocalSharedArrays()
        code = model.shared
        return code if isinstance(code, ModelCode) else ModelCode(model)

    @classmethod
    def worker_launcher(cls, model: ModelContext) -> Launcher:
        code = model.shared
        assert isinstance(code, ModelCode), "bug: load must be called before worker_launcher"  # noqa: S101
        return PythonLauncher(model, code)

    @classmethod
    def unload(cls, shared: object) -> None:
        if isinstance(shared, ModelCode):
            shared.close()

    @classmethod
    def _is_local(cls, model: ModelContext) -> bool:
        return model.parameters.get("isolation", cls.isolation) == "thread"

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._local = self._begin()

    def _begin(self) -> LocalInstance:
        from tritonpy_backend_python.in_process.instance import LocalInstance

        return LocalInstance(self.model, self.instance)

    def execute(self, batch: Batch) -> None:
        self._local.execute(batch)

    def is_ready(self) -> bool:
        return self._local.is_ready()

    def close(self) -> None:
        self._local.close()
