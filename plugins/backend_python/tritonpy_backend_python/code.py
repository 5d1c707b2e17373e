"""What all workers of one version of a model share."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from tritonpy import ModelContext, SpawnedProcess, WorkerProcess
from tritonpy_backend_python.environments import Environment, resolve_environment
from tritonpy_backend_python.limits import limits_of
from tritonpy_backend_python.options import PythonOptions
from tritonpy_backend_python.template import Template, TemplateLostError
from tritonpy_backend_python.worker_folder import WORKER_FOLDER

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class ModelCode:
    """The limits of the workers, the environment that they run in, and the process that has imported the code.

    Made when the configuration is completed or the version is loaded, whichever comes first; closed when the version is unloaded.
    """

    def __init__(self, model: ModelContext) -> None:
        options = model.options
        assert isinstance(options, PythonOptions), "the core decodes the options of a backend: this is a bug"  # noqa: S101
        self._model = model
        self._lock = threading.RLock()
        self._template: Template | None = None
        self._spent = False  # it became a worker: further ones start afresh
        self.limits = limits_of(model, options)
        self.environment: Environment = resolve_environment(
            model.directory, model.path, model.parameters, options, model.log
        )

    def template(self) -> Template:
        """Return the process that has imported the code, started when there is none."""
        with self._lock:
            if self._template is None:
                self._template = Template(self._model, self.environment)
            return self._template

    def launch(self, connection: socket.socket, output: int, instances: int) -> WorkerProcess:
        """Return a worker: forked from the template where there are several instances, or the template itself, or a fresh process."""
        template = self._template_for(instances)
        if template is not None:
            try:
                if instances == 1 or template.unforkable:
                    return template.become(connection, output)
                return template.fork(connection, output)
            except TemplateLostError as error:
                self._model.log.warning("%s", error)
                self._drop(template)
        command = self.environment.command([str(WORKER_FOLDER), str(connection.fileno())])
        return SpawnedProcess.start(command, connection, output, self.environment.process_variables())

    def close(self) -> None:
        """End the template process and give the environment back."""
        with self._lock:
            template, self._template = self._template, None
        if template is not None:
            template.close()
        self.environment.release()

    def _template_for(self, instances: int) -> Template | None:
        """Return the template that the next worker comes from; taken out where the worker is to be the template itself."""
        with self._lock:
            template = self.template() if instances > 1 and not self._spent else self._template
            if template is not None and (instances == 1 or template.unforkable):
                self._template, self._spent = None, True
            return template

    def _drop(self, template: Template) -> None:
        with self._lock:
            if self._template is template:
                self._template = None
        template.close()


def instance_count(config: ModelConfig) -> int:
    """Return how many workers a model has."""
    return sum(group.count * max(len(group.gpus), 1) for group in config.instance_group)
