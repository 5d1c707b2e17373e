"""The backend itself: ties a compiled model to the server's requests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from tritonpy import Backend, Batch, InferResponse, InstanceContext, MemoryUsage, ModelContext, gather, scatter
from tritonpy_backend_openvino.completion import completed, needs_completion
from tritonpy_backend_openvino.execution import Execution, Running
from tritonpy_backend_openvino.failures import failure_of, told_as
from tritonpy_backend_openvino.files import FILENAMES
from tritonpy_backend_openvino.opened import OpenedModel
from tritonpy_backend_openvino.options import OpenVinoOptions
from tritonpy_backend_openvino.requests import InferRequests
from tritonpy_backend_openvino.settings import CPU_EXTENSION

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class OpenVinoBackend(Backend):
    """Runs a model in OpenVINO, on any device that OpenVINO has.

    All instances share one compiled model, so that its weights are in memory once; each has infer requests of its own, as many as
    keep its share of the device busy. The configuration's parameters are those of Triton.
    """

    Options: ClassVar[type[OpenVinoOptions]] = OpenVinoOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    default_filenames: ClassVar[tuple[str, ...]] = FILENAMES
    path_parameters: ClassVar[tuple[str, ...]] = (CPU_EXTENSION,)

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration with what the model's file says; the model read for it is kept."""
        if not needs_completion(model.config):
            return model.config
        opened = model.shared = OpenedModel(model)
        result = completed(model.config, opened.signature(), model.default_max_batch_size)
        if result.max_batch_size != model.config.max_batch_size:
            model.log.info(
                "model '%s' can batch and its configuration gives no max_batch_size: it is %d now",
                model.name, result.max_batch_size,
            )  # fmt: skip
        return result

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return the model that the instances share."""
        return model.shared or OpenedModel(model)

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
        """Return the bytes of the model's weights, once for each time that it is compiled."""
        return shared.memory_usage() if isinstance(shared, OpenedModel) else ()

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        compiled = model.shared.acquire(model.config, instance.kind, instance.cores)
        self._execution = Execution(model.config, compiled)
        self._requests = InferRequests(compiled.make_requests(), instance.name)

    def execute(self, batch: Batch) -> None:
        """Start the batch, and return as soon as the instance can start another one; the answers come when it is done."""
        tensors = gather(batch)
        batch.stamp()
        running = self._execution.begin(tensors, batch.size)
        with told_as("running async inference"):
            self._requests.run(running.fill, partial(self._finish, batch, running))

    def close(self) -> None:
        """Wait for what runs, and end the threads."""
        self._requests.close()

    @classmethod
    def unload(cls, shared: object) -> None:
        """Let go of the model."""
        if isinstance(shared, OpenedModel):
            shared.close()

    @staticmethod
    def _finish(batch: Batch, running: Running, error: Exception | None) -> None:
        batch.stamp()
        try:
            responses = scatter(batch, running.outputs()) if error is None else _failed(batch, error)
        except Exception as failure:
            responses = _failed(batch, failure)
        batch.respond(responses)


def _failed(batch: Batch, error: Exception) -> list[InferResponse]:
    told = failure_of("running inference", error)
    return [InferResponse.failed(request, told) for request in batch.requests]
