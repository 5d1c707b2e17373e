"""The debugged instance."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from tritonpy import Batch, InstanceContext, Internal, ModelContext, TritonError
from tritonpy_backend_python.debug.main_thread import MainThread, MainThreadCoroutines
from tritonpy_backend_python.debug.report import Reporter, print_message
from tritonpy_backend_python.in_process.host import LocalHost
from tritonpy_backend_python.in_process.instance import Components, LocalInstance
from tritonpy_worker.api.request import InferenceRequest
from tritonpy_worker.execution import Executor
from tritonpy_worker.failure import describe_error, failure_prefix

_T = TypeVar("_T")


class DebuggedExecutor(Executor):
    """Reports exceptions of the model to the terminal instead of the log."""

    def __init__(self, main_thread: MainThread, reporter: Reporter, *parts: Any) -> None:
        super().__init__(*parts)
        self._main_thread = main_thread
        self._reporter = reporter

    def _execute(self, requests: list[InferenceRequest]) -> Any:
        with self._main_thread.interruptible():
            return super()._execute(requests)

    def _log_failure(self, error: BaseException) -> str:
        with self._main_thread.interruptible():
            self._reporter.report(error)
        return failure_prefix(self._name) + describe_error(error)


class DebuggedHost(LocalHost):
    """Prints a message when the model calls a model that is not loaded."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._model = model

    def call_error(self, name: str, error: TritonError) -> TritonError:
        if name not in {each.name for each in self._model.engine.repository_index(ready=True)}:
            print_message(
                f"'{self._model.name}' called the model '{name}', which is not loaded here: "
                f"add --with {name}"
            )
        return super().call_error(name, error)


class DebuggedInstance(LocalInstance):
    """Runs the model in the main thread, while the instance's thread waits for the result."""

    def __init__(
        self,
        main_thread: MainThread,
        reporter: Reporter,
        model: ModelContext,
        instance: InstanceContext,
    ) -> None:
        self._main_thread = main_thread
        self._reporter = reporter
        components = Components(
            host=DebuggedHost,
            executor=partial(DebuggedExecutor, main_thread, reporter),
            coroutines=partial(MainThreadCoroutines, main_thread),
            prints_to_log=False,
        )
        run_and_report(
            main_thread, reporter, partial(super().__init__, model, instance, components)
        )

    def execute(self, batch: Batch) -> None:
        self._main_thread.run(partial(super().execute, batch))

    def is_ready(self) -> bool:
        return run_and_report(self._main_thread, self._reporter, super().is_ready)

    def close(self) -> None:
        run_and_report(self._main_thread, self._reporter, super().close)

    def _finalize_failed(self, error: BaseException) -> None:
        self._reporter.report(error)


def run_and_report(main_thread: MainThread, reporter: Reporter, act: Callable[[], _T]) -> _T:
    """Run `act` in the main thread and report the model's exceptions.

    Raises the server's `TritonError`.
    """

    def reported() -> _T:
        with main_thread.interruptible():
            try:
                return act()
            except Internal as failure:
                if failure.__cause__ is not None:
                    reporter.report(failure.__cause__)
                raise
            except KeyboardInterrupt as interrupt:
                reporter.report(interrupt)
                raise Internal("interrupted") from None

    return main_thread.run(reported)
