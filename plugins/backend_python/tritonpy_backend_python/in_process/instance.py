"""A model instance in the server's own process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tritonpy import Batch, InstanceContext, Internal, ModelContext
from tritonpy_backend_python.arguments import initialize_arguments
from tritonpy_backend_python.in_process.code import LocalCode
from tritonpy_backend_python.in_process.host import LocalHost
from tritonpy_backend_python.in_process.printing import Printer
from tritonpy_backend_python.in_process.sink import LocalSink
from tritonpy_worker import host as hosts
from tritonpy_worker import model_object
from tritonpy_worker.coroutines import Coroutines
from tritonpy_worker.execution import Executor
from tritonpy_worker.failure import describe
from tritonpy_worker.memory import Reserve


@dataclass(frozen=True, slots=True)
class Tools:
    """What an instance is made of; a debugger has its own."""

    host: Callable[[ModelContext, InstanceContext], LocalHost] = LocalHost
    executor: Callable[..., Executor] = Executor
    coroutines: Callable[[], Coroutines] = Coroutines
    prints_to_log: bool = True


STANDARD = Tools()


class LocalInstance:
    """Its object, initialized, and what serves it: the backend's methods of the same names, for the thread of the instance.

    Raises Internal with the text that a worker's failure has, from what the model raised.
    """

    def __init__(self, model: ModelContext, instance: InstanceContext, tools: Tools = STANDARD) -> None:
        self._host = tools.host(model, instance)
        self._printer = Printer(self._host)
        self._coroutines = tools.coroutines()
        if self._host.decoupled:
            self._coroutines.pace()
        self._code: LocalCode | None = None
        try:
            with hosts.using(self._host):
                self._begin(model, instance, tools)
        except BaseException as error:
            self._release()
            raise Internal(describe(error)) from error
        self._host.executing = True

    def execute(self, batch: Batch) -> None:
        """Answer every request of `batch`, now or later, by the rules of the worker."""
        with hosts.using(self._host):
            try:
                requests = self._host.begin(batch)
                batch.stamp()
                self._executor.run(requests)
            finally:
                self._printer.end_line()
                self._host.end()

    def is_ready(self) -> bool:
        """Ask the model, if it has a check of its own. Raises Internal where the check fails."""
        if not model_object.asks_ready(self._object):
            return True
        try:
            with hosts.using(self._host):
                return model_object.is_ready(self._object, self._coroutines)
        except BaseException as error:
            raise Internal(describe(error)) from error

    def close(self) -> None:
        """Let the model clean up, and forget its code; what goes wrong is logged. A second time is fine."""
        if not self._host.executing:
            return
        self._host.executing = False
        self._coroutines.stop()
        try:
            with hosts.using(self._host):
                model_object.finalize(self._object)
        except BaseException as error:  # SystemExit as well
            self._finalize_failed(error)
        self._release()

    def _finalize_failed(self, error: BaseException) -> None:
        self._host.log("INFO", describe(error))

    def _begin(self, model: ModelContext, instance: InstanceContext, tools: Tools) -> None:
        self._code = code = LocalCode(model, self._host, self._printer.builtins() if tools.prints_to_log else {})
        args = initialize_arguments(model, instance)
        self._object = model_object.make(code.load(), args)
        self._printer.end_line()
        self._executor = tools.executor(
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
