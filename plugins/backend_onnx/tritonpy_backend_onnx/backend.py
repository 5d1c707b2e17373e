"""Backend class that runs batches in ONNX Runtime sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tritonpy import Batch, InstanceContext, ModelContext
from tritonpy.config import SearchDimension, thread_counts
from tritonpy.execution import gather, scatter
from tritonpy_backend_kit.config_completion import log_batch_size, needs_completion
from tritonpy_backend_kit.shared_model import SharedModelBackend
from tritonpy_backend_onnx.config_check import check_config
from tritonpy_backend_onnx.config_completion import complete_config
from tritonpy_backend_onnx.errors import to_triton_error
from tritonpy_backend_onnx.execution import create_execution
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.providers import ProviderDevice
from tritonpy_backend_onnx.runtime import has_cuda
from tritonpy_backend_onnx.settings import SESSION_PATHS
from tritonpy_backend_onnx.shared_model import DEFAULT_FILENAME, SharedModel, first_device
from tritonpy_backend_onnx.tensorrt_options import TENSORRT_PATHS

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class OnnxRuntimeBackend(SharedModelBackend):
    """Runs an ONNX model in ONNX Runtime, on the CPU or on a GPU.

    All instances on a device share one session, so the weights are in memory once. With TensorRT or
    CUDA graphs each instance has its own session. GPUs need onnxruntime-gpu. Configuration
    parameters, graph levels and accelerators are those of Triton.
    """

    shared_class: ClassVar[type[SharedModel]] = SharedModel
    Options: ClassVar[type[OnnxOptions]] = OnnxOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    model_parameters: ClassVar[tuple[str, ...]] = (
        "intra_op_thread_count",
        "inter_op_thread_count",
        "execution_mode",
        "enable_mem_arena",
        "enable_mem_pattern",
        "memory.enable_memory_arena_shrinkage",
        "session.use_device_allocator_for_initializers",
        "gpu_mem_limit",
        "do_copy_in_default_stream",
        "cudnn_conv_algo_search",
        "arena_extend_strategy",
        "memory_limit_bytes",
    )
    default_filenames: ClassVar[tuple[str, ...]] = (DEFAULT_FILENAME,)
    platforms: ClassVar[tuple[str, ...]] = ("onnxruntime_onnx",)
    # Triton runs two on the CPU. Here a second one would only wait for the GIL, and for cores that
    # the first one's threads use. int32[8,16] add/sub does 70k runs/s with one and 38k with two. A
    # 1024-wide network does 860 and 680.
    default_instance_count: ClassVar[int] = 1
    uses_gpu: ClassVar[bool] = has_cuda()
    runs_on_any_thread: ClassVar[bool] = True
    path_parameters: ClassVar[tuple[str, ...]] = (*SESSION_PATHS, *TENSORRT_PATHS)

    @classmethod
    def search_dimensions(cls, cores: int) -> Sequence[SearchDimension]:
        """Return the number of threads of one execution."""
        return (SearchDimension("intra_op_thread_count", thread_counts(cores)),)

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration completed from the model file.

        Keep the session opened for it.
        """
        if not needs_completion(model.config):
            return model.config
        sessions = model.shared = SharedModel(model)
        signature = sessions.describe(first_device(model.config))
        result = complete_config(model.config, signature, model.default_max_batch_size)
        log_batch_size(model, result)
        return result

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        gpu = instance.kind == "GPU"
        self._staging = model.memory if gpu else None
        opened = model.shared.acquire(
            ProviderDevice("GPU", instance.device_id) if gpu else ProviderDevice("CPU", 0),
            instance.cores,
        )
        check_config(model.config, opened.signature)
        config, outputs = model.config, opened.signature.outputs
        shapes = {state.output_name: tuple(state.dims) for state in config.sequence_batching.state}
        shapes.update({field.name: tuple(field.dims) for field in config.output})
        scalars = {name: shape for name, shape in shapes.items() if not outputs[name].dims}
        self._execution = create_execution(opened, list(shapes), scalars, gpu)

    def execute(self, batch: Batch) -> None:
        """Run the batch; an ONNX Runtime error fails the whole batch with Triton's error text."""
        try:
            tensors = (
                gather(batch)
                if self._staging is None
                else gather(batch, self._staging.pinned_input)
            )
            batch.stamp()
            outputs = self._execution(tensors)
        except Exception as error:
            raise to_triton_error(error) from error
        batch.stamp()
        batch.respond(scatter(batch, outputs))
