"""How the process of an instance is started, and what it is told."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.worker import Launcher
from tritonpy.errors import Unavailable
from tritonpy.runners.workers.backend_process.reference import reference_of
from tritonpy.runners.workers.backend_process.start import Start
from tritonpy.runners.workers.spawned import SpawnedProcess


class SpawnLauncher(Launcher):
    """Runs a `Backend` class in processes of the server's own interpreter and environment.

    Raises InvalidArgument for a class that no other process can import.
    """

    def __init__(self, model: ModelContext, backend: type[Backend]) -> None:
        self._model = model
        self._backend = reference_of(backend)

    def launch(self, instance: InstanceContext, connection: socket.socket, output: int) -> SpawnedProcess:
        if not sys.executable:
            raise Unavailable(f"{instance.name} needs a process of its own, and where the interpreter is, is not known")
        # -P: what lies in the working directory must not stand in for a module of the same name.
        command = [sys.executable, "-P", "-m", __package__, str(connection.fileno())]
        return SpawnedProcess.start(command, connection, output)

    def start_message(self, instance: InstanceContext) -> Mapping[str, Any]:
        message: Mapping[str, Any] = msgspec.to_builtins(Start.of(self._model, self._backend, instance))
        return message
