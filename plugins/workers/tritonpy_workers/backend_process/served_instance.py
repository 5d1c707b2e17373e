"""The backend instance of a worker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from tritonpy import Backend, Batch, Engine, MemoryUsage, ModelContext
from tritonpy.execution import (
    BatchLayout,
    Device,
    pooled_memory,
    reports_memory,
    total_memory_usage,
)
from tritonpy.metrics import ModelMetrics
from tritonpy_workers.backend_process.class_reference import resolve
from tritonpy_workers.backend_process.start_message import InstanceStartMessage

log = logging.getLogger("tritonpy.instance")


class ServedInstance:
    """The instance of a backend; creating it loads the model. Raises the backend's errors."""

    def __init__(
        self,
        start: InstanceStartMessage,
        engine: Engine,
        metrics: ModelMetrics,
        take_more: Callable[[int], Batch | None],
    ) -> None:
        kind: type[Backend] = resolve(start.backend, "backend")
        self._kind = kind
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
        """Return the memory usage that the backend reports; from any thread."""
        reported = [
            *self._kind.shared_memory_usage(self.model.shared),
            *self.backend.memory_usage(),
        ]
        return total_memory_usage([*reported, *pooled_memory(self.model.memory)])

    @property
    def reports_memory(self) -> bool:
        """Whether the backend reports its memory usage or may use the memory pools."""
        return reports_memory(self._kind) or self.model.memory.has_pools

    def is_ready(self) -> bool:
        """Return the result of the backend's readiness check; from any thread."""
        return bool(self.backend.is_ready())

    @property
    def has_ready_check(self) -> bool:
        """Whether the backend has its own readiness check."""
        return self._kind.is_ready is not Backend.is_ready

    def close(self) -> None:
        """Close the instance and free shared resources; errors are logged."""
        try:
            self.backend.close()
        except Exception:
            log.exception("instance %s failed to close", self.context.name)
        self._unload()

    def _unload(self) -> None:
        try:
            self._kind.unload(self.model.shared)
        except Exception:
            log.exception("backend %s failed to free its shared resources", self._kind.__name__)


def _model_context(
    start: InstanceStartMessage, kind: type[Backend], engine: Engine, metrics: ModelMetrics
) -> ModelContext:
    model, config = start.model, start.model.parsed_config()
    gpus: Device = resolve(model.device, "device")(model.devices, model.gpus)
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
        memory=gpus.model_memory(config.optimization),
        gpus=gpus,
    )
