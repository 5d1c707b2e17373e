"""The launcher of worker processes."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from tritonpy import Backend, InstanceContext, ModelContext, Unavailable
from tritonpy.execution import Launcher, SpawnedProcess
from tritonpy_workers.backend_process.class_reference import reference_of
from tritonpy_workers.backend_process.start_message import InstanceStartMessage


class SpawnLauncher(Launcher):
    """Runs a `Backend` class in processes with the server's interpreter and environment.

    Raises `InvalidArgument` for a class that other processes cannot import.
    """

    def __init__(self, model: ModelContext, backend: type[Backend]) -> None:
        self._model = model
        self._backend = reference_of(backend, "backend")
        self._environment = backend.worker_environment(model)

    def launch(
        self, instance: InstanceContext, connection: socket.socket, output: int
    ) -> SpawnedProcess:
        if not sys.executable:
            raise Unavailable(
                f"{instance.name} needs its own process, but the path of the Python interpreter "
                "is unknown"
            )
        # -P: modules in the working directory must not shadow those of the same name.
        command = [sys.executable, "-P", "-m", __package__, str(connection.fileno())]
        environment = {**os.environ, **self._environment}
        return SpawnedProcess.start(command, connection, output, environment)

    def start_message(self, instance: InstanceContext) -> Mapping[str, Any]:
        message: Mapping[str, Any] = msgspec.to_builtins(
            InstanceStartMessage.of(self._model, self._backend, instance)
        )
        return message
