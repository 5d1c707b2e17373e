"""Backend class that runs batches in OpenVINO infer requests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from tritonpy import Batch, InferResponse, InstanceContext, ModelContext
from tritonpy.config import DEFAULT_SETTING, SearchDimension, thread_counts
from tritonpy.execution import gather, scatter
from tritonpy_backend_kit.config_completion import log_batch_size, needs_completion
from tritonpy_backend_kit.shared_model import SharedModelBackend
from tritonpy_backend_openvino.config_completion import complete_config
from tritonpy_backend_openvino.errors import to_triton_error, translate_errors
from tritonpy_backend_openvino.execution import Execution, RunningBatch
from tritonpy_backend_openvino.model_file import FILENAMES
from tritonpy_backend_openvino.options import OpenVinoOptions
from tritonpy_backend_openvino.request_pool import InferRequestPool
from tritonpy_backend_openvino.settings import CPU_EXTENSION
from tritonpy_backend_openvino.shared_model import SharedModel

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class OpenVinoBackend(SharedModelBackend):
    """Runs a model on any OpenVINO device.

    All instances share one compiled model, so the weights are in memory once. Each instance has
    enough infer requests of its own to keep its share of the device busy. Configuration parameters
    are those of Triton.
    """

    shared_class: ClassVar[type[SharedModel]] = SharedModel
    Options: ClassVar[type[OpenVinoOptions]] = OpenVinoOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    model_parameters: ClassVar[tuple[str, ...]] = (
        "COMPILATION_NUM_THREADS",
        "CPU_EXTENSION_PATH",
        "ENABLE_BATCH_PADDING",
        "HINT_BF16",
        "INFERENCE_NUM_THREADS",
        "INFERENCE_PRECISION_HINT",
        "NUM_STREAMS",
        "PERFORMANCE_HINT",
        "RESHAPE_IO_LAYERS",
        "SKIP_OV_DYNAMIC_BATCHSIZE",
        "TARGET_DEVICE",
        "memory_limit_bytes",
        "precision",
    )
    default_filenames: ClassVar[tuple[str, ...]] = FILENAMES
    path_parameters: ClassVar[tuple[str, ...]] = (CPU_EXTENSION,)

    @classmethod
    def search_dimensions(cls, cores: int) -> Sequence[SearchDimension]:
        """Return the number of threads and streams of a compiled model, and its precision."""
        counts = thread_counts(cores)
        return (
            SearchDimension("INFERENCE_NUM_THREADS", counts),
            SearchDimension("NUM_STREAMS", counts),
            SearchDimension("HINT_BF16", (DEFAULT_SETTING, "yes"), changes_output=True),
        )

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration completed from the model file; keep the model read for it."""
        if not needs_completion(model.config):
            return model.config
        opened = model.shared = SharedModel(model)
        result = complete_config(model.config, opened.signature(), model.default_max_batch_size)
        log_batch_size(model, result)
        return result

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        compiled = model.shared.acquire(model.config, instance.kind, instance.cores)
        self._execution = Execution(model.config, compiled)
        self._requests = InferRequestPool(compiled.create_requests(), instance.name)

    def execute(self, batch: Batch) -> None:
        """Start the batch and return when the instance can start another.

        Responses follow on completion.
        """
        tensors = gather(batch)
        batch.stamp()
        running = self._execution.prepare(tensors, batch.size)
        with translate_errors("running async inference"):
            self._requests.run(running.fill, partial(self._finish, batch, running))

    def close(self) -> None:
        """Wait for running requests and end the threads."""
        self._requests.close()

    @staticmethod
    def _finish(batch: Batch, running: RunningBatch, error: Exception | None) -> None:
        batch.stamp()
        try:
            responses = (
                scatter(batch, running.outputs())
                if error is None
                else _failed_responses(batch, error)
            )
        except Exception as failure:
            responses = _failed_responses(batch, failure)
        batch.respond(responses)


def _failed_responses(batch: Batch, error: Exception) -> list[InferResponse]:
    triton_error = to_triton_error("running inference", error)
    return [InferResponse.failed(request, triton_error) for request in batch.requests]
