"""State that all workers of a model version share: limits, environment and template process."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from tritonpy import ModelContext
from tritonpy.execution import SpawnedProcess, WorkerProcess
from tritonpy_backend_python.environments import Environment, resolve_environment
from tritonpy_backend_python.limits import limits_of
from tritonpy_backend_python.options import PythonOptions
from tritonpy_backend_python.template import Template, TemplateLostError
from tritonpy_backend_python.worker_folder import WORKER_FOLDER

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class ModelCode:
    """The limits and environment of a version's workers, and its template process.

    It is created when the configuration is completed or the version is loaded, whichever is first,
    and closed when the version is unloaded.
    """

    def __init__(self, model: ModelContext) -> None:
        options = model.options
        assert isinstance(options, PythonOptions), "bug: the core must decode the backend's options"  # noqa: S101
        self._model = model
        self._lock = threading.RLock()
        self._template: Template | None = None
        self._used_up = False  # the template became a worker: further workers start from scratch
        self.limits = limits_of(model, options)
        self.environment: Environment = resolve_environment(
            model.directory, model.path, model.parameters, options, model.log
        )

    def template(self) -> Template:
        """Return the template process, which has imported the code. Start it if necessary."""
        with self._lock:
            if self._template is None:
                self._template = Template(self._model, self.environment)
            return self._template

    def launch(self, connection: socket.socket, output: int, instances: int) -> WorkerProcess:
        """Return a new worker: a fork of the template, the template itself, or a new process."""
        template = self._template_for(instances)
        if template is not None:
            try:
                if instances == 1 or template.fork_obstacle:
                    return template.become(connection, output)
                return template.fork(connection, output)
            except TemplateLostError as error:
                self._model.log.warning("%s", error)
                self._drop(template)
        command = self.environment.command([str(WORKER_FOLDER), str(connection.fileno())])
        return SpawnedProcess.start(
            command, connection, output, self.environment.process_variables()
        )

    def close(self) -> None:
        """Stop the template process and release the environment."""
        with self._lock:
            template, self._template = self._template, None
        if template is not None:
            template.close()
        self.environment.release()

    def _template_for(self, instances: int) -> Template | None:
        """Return the template for the next worker, or None if the worker starts from scratch.

        Detach the template if it will become the worker itself.
        """
        with self._lock:
            template = self.template() if instances > 1 and not self._used_up else self._template
            if template is not None and (instances == 1 or template.fork_obstacle):
                self._template, self._used_up = None, True
            return template

    def _drop(self, template: Template) -> None:
        with self._lock:
            if self._template is template:
                self._template = None
        template.close()


def instance_count(config: ModelConfig) -> int:
    """Return the number of workers of a model."""
    return sum(group.count * max(len(group.gpus), 1) for group in config.instance_group)
