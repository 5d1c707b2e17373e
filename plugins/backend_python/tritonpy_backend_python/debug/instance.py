"""The instance that is debugged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from tritonpy import Batch, InstanceContext, Internal, ModelContext, TritonError
from tritonpy_backend_python.debug.report import Reporter, say
from tritonpy_backend_python.debug.stage import Stage, StageCoroutines
from tritonpy_backend_python.in_process.host import LocalHost
from tritonpy_backend_python.in_process.instance import LocalInstance, Tools
from tritonpy_worker.api.request import InferenceRequest
from tritonpy_worker.execution import Executor
from tritonpy_worker.failure import describe, failure_of

_T = TypeVar("_T")


class DebuggedExecutor(Executor):
    """Reports what the model raises, where a server would log it."""

    def __init__(self, stage: Stage, reporter: Reporter, *parts: Any) -> None:
        super().__init__(*parts)
        self._stage = stage
        self._reporter = reporter

    def _execute(self, requests: list[InferenceRequest]) -> Any:
        with self._stage.interruptible():
            return super()._execute(requests)

    def _told(self, error: BaseException) -> str:
        with self._stage.interruptible():
            self._reporter.tell(error)
        return failure_of(self._name) + describe(error)


class DebuggedHost(LocalHost):
    """Says why a model that is called is not there."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._model = model

    def refused(self, name: str, error: TritonError) -> TritonError:
        if name not in {each.name for each in self._model.engine.repository_index(ready=True)}:
            say(f"'{self._model.name}' called the model '{name}', which is not loaded here: add --with {name}")
        return super().refused(name, error)


class DebuggedInstance(LocalInstance):
    """Lives in the main thread; called from the thread of the instance, which waits."""

    def __init__(self, stage: Stage, reporter: Reporter, model: ModelContext, instance: InstanceContext) -> None:
        self._stage = stage
        self._reporter = reporter
        tools = Tools(
            host=DebuggedHost,
            executor=partial(DebuggedExecutor, stage, reporter),
            coroutines=partial(StageCoroutines, stage),
            prints_to_log=False,
        )
        perform(stage, reporter, partial(super().__init__, model, instance, tools))

    def execute(self, batch: Batch) -> None:
        self._stage.run(partial(super().execute, batch))

    def is_ready(self) -> bool:
        return perform(self._stage, self._reporter, super().is_ready)

    def close(self) -> None:
        perform(self._stage, self._reporter, super().close)

    def _finalize_failed(self, error: BaseException) -> None:
        self._reporter.tell(error)


def perform(stage: Stage, reporter: Reporter, act: Callable[[], _T]) -> _T:
    """Run `act` in the main thread and report what the model raised in it. Raises the TritonError that a server would tell."""

    def reported() -> _T:
        with stage.interruptible():
            try:
                return act()
            except Internal as failure:
                if failure.__cause__ is not None:
                    reporter.tell(failure.__cause__)
                raise
            except KeyboardInterrupt as interrupt:
                reporter.tell(interrupt)
                raise Internal("interrupted") from None

    return stage.run(reported)
