"""Backend class that runs batches on TensorRT engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tritonpy import (
    Batch,
    InferResponse,
    InstanceContext,
    Internal,
    InvalidArgument,
    ModelContext,
    Tensor,
    TritonError,
)
from tritonpy.execution import scatter
from tritonpy_backend_kit.shared_model import SharedModelBackend
from tritonpy_backend_trt.completion_thread import CompletionThread
from tritonpy_backend_trt.config_check import check_config
from tritonpy_backend_trt.config_completion import complete_config
from tritonpy_backend_trt.cuda import CudaRuntimeError
from tritonpy_backend_trt.options import TensorRtOptions
from tritonpy_backend_trt.pending_execution import PendingExecution
from tritonpy_backend_trt.pipeline import Pipeline
from tritonpy_backend_trt.plan_file import DEFAULT_FILENAME
from tritonpy_backend_trt.resources import create_resources
from tritonpy_backend_trt.shared_model import NO_DLA, SharedModel

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class TensorRtBackend(SharedModelBackend):
    """Runs a TensorRT engine on a GPU, through the full or the lean runtime.

    All instances on a GPU share the engine, so the weights are in memory once. Each instance has
    its own execution contexts, streams and buffers. A second thread sends the responses, so that
    the next batch is copied to the GPU while one runs.
    """

    shared_class: ClassVar[type[SharedModel]] = SharedModel
    Options: ClassVar[type[TensorRtOptions]] = TensorRtOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    model_parameters: ClassVar[tuple[str, ...]] = (
        "execution_context_allocation_strategy",
        "weight_streaming_budget",
        "enable_multi_device",
        "memory_limit_bytes",
    )
    default_filenames: ClassVar[tuple[str, ...]] = (DEFAULT_FILENAME,)
    platforms: ClassVar[tuple[str, ...]] = ("tensorrt_plan",)
    uses_gpu: ClassVar[bool] = True

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration completed from the engine; keep the engine opened for it.

        Without a GPU nothing is completed, as in Triton.
        """
        group = next(iter(model.config.instance_group), None)
        if group is None or group.kind != group.KIND_GPU or not group.gpus:
            return model.config
        shared_model = model.shared = SharedModel(model)
        try:
            signature = shared_model.acquire(group.gpus[0]).signature
        except TritonError as error:
            path = model.path / (model.config.default_model_filename or DEFAULT_FILENAME)
            raise Internal(
                f"unable to load plan file to auto complete config: {path}: {error.message}"
            ) from error
        return complete_config(model.config, signature, model.log)

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._pipeline: Pipeline | None = None
        self._is_failed = False
        if instance.kind != "GPU":
            raise InvalidArgument(
                f"unable to load model '{model.name}', TensorRT backend supports only GPU device"
            )
        shared_model: SharedModel = model.shared
        opened = shared_model.acquire(instance.device_id, _dla_core(model, instance), instance.name)
        check_config(model.config, opened.signature, instance.name)
        shared_model.cuda.set_device(instance.device_id)
        self._pipeline = Pipeline(create_resources(model, instance, shared_model, opened))
        self._eager = shared_model.settings.eager
        self._batched = model.config.max_batch_size > 0
        self._shape_outputs = {
            name for name, info in opened.signature.outputs.items() if info.is_shape
        }
        # A state must be available before the sequence's next execution, which would also overwrite
        # shape tensors.
        self._is_synchronous = bool(model.config.sequence_batching.state or self._shape_outputs)
        self._completion_thread = CompletionThread(
            f"{instance.name} responses",
            lambda: shared_model.cuda.set_device(instance.device_id),
            self._finish,
        )

    def execute(self, batch: Batch) -> None:
        """Enqueue the batch on the GPU; return when the next one may follow."""
        pipeline = self._pipeline
        assert pipeline is not None, (  # noqa: S101
            "nothing is executed before an instance is made, or after it was closed"
        )
        execution = pipeline.launch(batch)
        if self._is_synchronous:
            self._finish(execution)
            return
        self._completion_thread.put(execution)
        if not self._eager:
            # Form the next batch as late as possible: it is larger then.
            pipeline.wait_for_inputs(execution)

    def is_ready(self) -> bool:
        """Return False after a GPU failure, from which this process cannot recover."""
        return not self._is_failed

    def close(self) -> None:
        """Respond to pending executions, then free the instance's resources.

        Further calls do nothing.
        """
        if self._pipeline is not None:
            self._completion_thread.close()
            self._pipeline.close()
            self._pipeline = None

    def _finish(self, execution: PendingExecution) -> None:
        pipeline = self._pipeline
        assert pipeline is not None, "an instance is closed when its flights are over"  # noqa: S101
        batch = execution.batch
        try:
            responses = scatter(
                batch, self._strip_batch_size(pipeline.wait_for_outputs(execution), batch)
            )
        except Exception as error:
            self._is_failed = self._is_failed or isinstance(error, CudaRuntimeError)
            failure = error if isinstance(error, TritonError) else Internal(str(error))
            responses = [InferResponse.failed(request, failure) for request in batch.requests]
        pipeline.release(execution)
        batch.respond(responses)

    def _strip_batch_size(self, outputs: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """Remove the batch size, the first value, from the shape tensors of a batching model."""
        if not self._batched:
            return outputs
        for name in self._shape_outputs & outputs.keys():
            values = outputs[name].data
            if values[0] != batch.size:
                raise Internal(
                    "failed to retrieve the output shape values from binding "
                    f"'{self.instance.name}'"
                )
            outputs[name] = Tensor.from_numpy(name, values[1:])
        return outputs


def _dla_core(model: ModelContext, instance: InstanceContext) -> int:
    if len(instance.secondary_devices) > 1:
        raise InvalidArgument(
            f"{instance.name} of model {model.name} must have either zero or or one secondary "
            "devices"
        )
    return instance.secondary_devices[0][1] if instance.secondary_devices else NO_DLA
