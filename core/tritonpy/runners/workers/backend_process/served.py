"""The instance that a worker serves, and what it is made with."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from tritonpy.api.backend import Backend, ModelContext
from tritonpy.api.engine import Engine, MemoryUsage
from tritonpy.custom_metrics import ModelMetrics
from tritonpy.device_memory import MemoryPools
from tritonpy.devices import visible_gpus
from tritonpy.layout import BatchLayout
from tritonpy.runners.memory_report import lent, tells_memory
from tritonpy.runners.workers.backend_process.reference import resolve
from tritonpy.runners.workers.backend_process.start import Start
from tritonpy.statistics.memory import summed
from tritonpy.types import Batch

log = logging.getLogger("tritonpy.instance")


class Served:
    """A backend's instance. Making it takes as long as the model does to load, and raises what the backend raises."""

    def __init__(
        self, start: Start, engine: Engine, metrics: ModelMetrics, take_more: Callable[[int], Batch | None]
    ) -> None:
        self._kind = kind = resolve(start.backend)
        self.model = model = _model_context(start, kind, engine, metrics)
        self.context = start.instance.context()
        model.shared = kind.load(model)
        try:
            self.backend = kind(model, self.context)
        except BaseException:
            self._unload()
            raise
        self.context.take_more = take_more

    def memory_usage(self) -> list[MemoryUsage]:
        """Return what the backend says that it holds; from any thread."""
        told = [*self._kind.shared_memory_usage(self.model.shared), *self.backend.memory_usage()]
        return summed([*told, *lent(self.model.memory)])

    @property
    def tells_memory(self) -> bool:
        """Whether the backend says anything of its memory, or may have some of the pools."""
        return tells_memory(self._kind) or self.model.memory.lends

    def is_ready(self) -> bool:
        """Return what the backend says to that; from any thread."""
        return bool(self.backend.is_ready())

    @property
    def asks_ready(self) -> bool:
        """Whether the backend has a check of its own."""
        return self._kind.is_ready is not Backend.is_ready

    def close(self) -> None:
        """Close the instance and free what it shared; what goes wrong is logged."""
        try:
            self.backend.close()
        except Exception:
            log.exception("instance %s failed to close", self.context.name)
        self._unload()

    def _unload(self) -> None:
        try:
            self._kind.unload(self.model.shared)
        except Exception:
            log.exception("backend %s failed to free what it opened", self._kind.__name__)


def _model_context(start: Start, kind: type[Backend], engine: Engine, metrics: ModelMetrics) -> ModelContext:
    model, config = start.model, start.model.parsed_config()
    return ModelContext(
        name=model.name,
        version=model.version,
        config=config,
        directory=Path(model.directory),
        path=Path(model.path),
        parameters=model.parameters,
        output_types=model.output_types,
        options=msgspec.convert(model.options, kind.Options),
        engine=engine,
        log=logging.LoggerAdapter(
            logging.getLogger("tritonpy.backend"), {"model": model.name, "version": model.version}
        ),
        metrics=metrics,
        default_max_batch_size=model.default_max_batch_size,
        backend_directory=model.backend_folder(),
        layout=BatchLayout.of(config),
        memory=MemoryPools(model.devices, visible_gpus()).of_model(config.optimization),
    )
