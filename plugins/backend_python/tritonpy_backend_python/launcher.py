"""The launcher of a model version's workers."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from tritonpy import InstanceContext, ModelContext
from tritonpy.execution import Launcher, WorkerProcess
from tritonpy_backend_python.arguments import start_message
from tritonpy_backend_python.model_code import ModelCode, instance_count


class PythonLauncher(Launcher):
    """Starts instances as processes that run the folder `worker` in the model's environment."""

    def __init__(self, model: ModelContext, code: ModelCode) -> None:
        self._model = model
        self._code = code
        self._instances = instance_count(model.config)
        self.execution_limit_s = code.limits.execution_s

    def launch(
        self, instance: InstanceContext, connection: socket.socket, output: int
    ) -> WorkerProcess:
        return self._code.launch(connection, output, self._instances)

    def start_message(self, instance: InstanceContext) -> Mapping[str, Any]:
        return start_message(self._model, instance, self._code.limits)
