"""The backend itself: ties a model's sessions to the server's requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tritonpy import Backend, Batch, InstanceContext, MemoryUsage, ModelContext, gather, scatter
from tritonpy_backend_onnx.check import check
from tritonpy_backend_onnx.completion import completed, needs_completion
from tritonpy_backend_onnx.execution import execution_for
from tritonpy_backend_onnx.failures import failure_of
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.providers import Device
from tritonpy_backend_onnx.runtime import has_cuda
from tritonpy_backend_onnx.sessions import DEFAULT_FILENAME, Sessions, first_device
from tritonpy_backend_onnx.settings import SESSION_PATHS
from tritonpy_backend_onnx.tensorrt_options import TENSORRT_PATHS

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class OnnxRuntimeBackend(Backend):
    """Runs an ONNX model in ONNX Runtime, on the CPU or on a GPU that onnxruntime-gpu can use.

    All instances of a device share one session, so that a model's weights are in memory once; with TensorRT or CUDA graphs
    each instance has its own. The configuration's parameters, graph level and accelerators are those of Triton.
    """

    Options: ClassVar[type[OnnxOptions]] = OnnxOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    default_filenames: ClassVar[tuple[str, ...]] = (DEFAULT_FILENAME,)
    platforms: ClassVar[tuple[str, ...]] = ("onnxruntime_onnx",)
    # Triton runs two on the CPU. Here a second one only waits for the interpreter's lock and for cores that the first one's threads use:
    # int32[8,16] add/sub does 70k runs/s with one and 38k with two, a 1024-wide network 860 and 680.
    default_instance_count: ClassVar[int] = 1
    uses_gpu: ClassVar[bool] = has_cuda()
    runs_on_any_thread: ClassVar[bool] = True
    path_parameters: ClassVar[tuple[str, ...]] = (*SESSION_PATHS, *TENSORRT_PATHS)

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration with what the model's file says; the session opened for it is kept."""
        if not needs_completion(model.config):
            return model.config
        sessions = model.shared = Sessions(model)
        signature = sessions.describe(first_device(model.config))
        result = completed(model.config, signature, model.default_max_batch_size)
        if result.max_batch_size != model.config.max_batch_size:
            model.log.info(
                "model '%s' can batch and its configuration gives no max_batch_size: it is %d now",
                model.name, result.max_batch_size,
            )  # fmt: skip
        return result

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return the sessions that the instances share."""
        return model.shared or Sessions(model)

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        gpu = instance.kind == "GPU"
        self._staging = model.memory if gpu else None
        opened = model.shared.acquire(Device("GPU", instance.device_id) if gpu else Device("CPU", 0), instance.cores)
        check(model.config, opened.signature)
        config, outputs = model.config, opened.signature.outputs
        shapes = {state.output_name: tuple(state.dims) for state in config.sequence_batching.state}
        shapes.update({field.name: tuple(field.dims) for field in config.output})
        scalars = {name: shape for name, shape in shapes.items() if not outputs[name].dims}
        self._execution = execution_for(opened, list(shapes), scalars, gpu)

    def execute(self, batch: Batch) -> None:
        """Run the batch; an error of ONNX Runtime fails all of it with Triton's text."""
        try:
            tensors = gather(batch) if self._staging is None else gather(batch, self._staging.pinned_input)
            batch.stamp()
            outputs = self._execution(tensors)
        except Exception as error:
            raise failure_of(error) from error
        batch.stamp()
        batch.respond(scatter(batch, outputs))

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
        """Return what the sessions have, those that single instances have for themselves among them."""
        return shared.memory_usage() if isinstance(shared, Sessions) else ()

    @classmethod
    def unload(cls, shared: object) -> None:
        """Let go of the sessions."""
        if isinstance(shared, Sessions):
            shared.close()
