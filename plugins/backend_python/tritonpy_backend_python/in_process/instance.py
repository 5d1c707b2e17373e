"""A model instance in the server's process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tritonpy import Batch, InstanceContext, Internal, ModelContext
from tritonpy_backend_python.arguments import initialize_arguments
from tritonpy_backend_python.in_process.host import LocalHost
from tritonpy_backend_python.in_process.model_modules import LocalCode
from tritonpy_backend_python.in_process.printer import Printer
from tritonpy_backend_python.in_process.sink import LocalSink
from tritonpy_worker import host as hosts
from tritonpy_worker import model_object
from tritonpy_worker.coroutines import Coroutines
from tritonpy_worker.execution import Executor
from tritonpy_worker.failure import describe_error
from tritonpy_worker.memory import Reserve


@dataclass(frozen=True, slots=True)
class Components:
    """The components of an instance. A debugger replaces them."""

    host: Callable[[ModelContext, InstanceContext], LocalHost] = LocalHost
    executor: Callable[..., Executor] = Executor
    coroutines: Callable[[], Coroutines] = Coroutines
    prints_to_log: bool = True


STANDARD = Components()


class LocalInstance:
    """A model's initialized object and its environment.

    Its methods are those of a backend and run in the instance's thread. The constructor raises
    `Internal` from the model's exception, with the same text as a worker.
    """

    def __init__(
        self, model: ModelContext, instance: InstanceContext, components: Components = STANDARD
    ) -> None:
        self._host = components.host(model, instance)
        self._printer = Printer(self._host)
        self._coroutines = components.coroutines()
        if self._host.decoupled:
            self._coroutines.enable_flow_control()
        self._code: LocalCode | None = None
        try:
            with hosts.using(self._host):
                self._begin(model, instance, components)
        except BaseException as error:
            self._release()
            raise Internal(describe_error(error)) from error
        self._host.executing = True

    def execute(self, batch: Batch) -> None:
        """Execute `batch` by the same rules as a worker. Responses may be sent later."""
        with hosts.using(self._host):
            try:
                requests = self._host.begin(batch)
                batch.stamp()
                self._executor.run(requests)
            finally:
                self._printer.end_line()
                self._host.end()

    def is_ready(self) -> bool:
        """Return the result of the model's readiness check, or true.

        Raises `Internal` if the check fails.
        """
        if not model_object.has_ready_check(self._object):
            return True
        try:
            with hosts.using(self._host):
                return model_object.is_ready(self._object, self._coroutines)
        except BaseException as error:
            raise Internal(describe_error(error)) from error

    def close(self) -> None:
        """Finalize the model and remove its code. Errors are logged. May be called twice."""
        if not self._host.executing:
            return
        self._host.executing = False
        self._coroutines.stop()
        try:
            with hosts.using(self._host):
                model_object.finalize(self._object)
        except BaseException as error:  # including SystemExit
            self._finalize_failed(error)
        self._release()

    def _finalize_failed(self, error: BaseException) -> None:
        self._host.log("INFO", describe_error(error))

    def _begin(
        self, model: ModelContext, instance: InstanceContext, components: Components
    ) -> None:
        self._code = code = LocalCode(
            model, self._host, self._printer.builtins() if components.prints_to_log else {}
        )
        args = initialize_arguments(model, instance)
        self._object = model_object.make(code.load(), args)
        self._printer.end_line()
        self._executor = components.executor(
            self._object,
            code.path,
            instance.name,
            self._host.decoupled,
            LocalSink(self._host),
            self._coroutines,
            Reserve(),
        )

    def _release(self) -> None:
        self._coroutines.stop()
        self._printer.end_line()
        if self._code is not None:
            self._code.close()
        self._host.close()
