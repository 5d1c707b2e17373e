"""The backend itself: ties a model's engines to the server's requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tritonpy import (
    Backend,
    Batch,
    InferResponse,
    InstanceContext,
    Internal,
    InvalidArgument,
    MemoryUsage,
    ModelContext,
    Tensor,
    TritonError,
    scatter,
)
from tritonpy_backend_trt.assembly import assembled
from tritonpy_backend_trt.check import check
from tritonpy_backend_trt.completion import completed
from tritonpy_backend_trt.completions import Completions
from tritonpy_backend_trt.cuda import CudaFailure
from tritonpy_backend_trt.engines import NO_DLA, Engines
from tritonpy_backend_trt.flight import Flight
from tritonpy_backend_trt.options import TensorRtOptions
from tritonpy_backend_trt.pipeline import Pipeline
from tritonpy_backend_trt.plan_file import DEFAULT_FILENAME

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class TensorRtBackend(Backend):
    """Runs a TensorRT engine on a GPU, through the full or the lean runtime.

    All instances of a GPU share the engine, so that a model's weights are there once; each has execution contexts, streams and buffers of its own.
    An execution is answered by another thread than the instance's: the next batch is on its way to the GPU while one runs.
    """

    Options: ClassVar[type[TensorRtOptions]] = TensorRtOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    default_filenames: ClassVar[tuple[str, ...]] = (DEFAULT_FILENAME,)
    platforms: ClassVar[tuple[str, ...]] = ("tensorrt_plan",)
    uses_gpu: ClassVar[bool] = True

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration with what the engine says; the engine opened for it is kept. Without a GPU nothing is completed, as in Triton."""
        group = next(iter(model.config.instance_group), None)
        if group is None or group.kind != group.KIND_GPU or not group.gpus:
            return model.config
        engines = model.shared = Engines(model)
        try:
            signature = engines.acquire(group.gpus[0]).signature
        except TritonError as error:
            path = model.path / (model.config.default_model_filename or DEFAULT_FILENAME)
            raise Internal(f"unable to load plan file to auto complete config: {path}: {error.message}") from error
        return completed(model.config, signature, model.log)

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return the engines that the instances share."""
        return model.shared or Engines(model)

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._pipeline: Pipeline | None = None
        self._broken = False
        if instance.kind != "GPU":
            raise InvalidArgument(f"unable to load model '{model.name}', TensorRT backend supports only GPU device")
        engines: Engines = model.shared
        opened = engines.acquire(instance.device_id, _dla_core(model, instance), instance.name)
        check(model.config, opened.signature, instance.name)
        engines.cuda.use(instance.device_id)
        self._pipeline = Pipeline(assembled(model, instance, engines, opened))
        self._eager = engines.settings.eager
        self._batched = model.config.max_batch_size > 0
        self._shape_outputs = {name for name, info in opened.signature.outputs.items() if info.is_shape}
        # A state must be back before the next execution of its sequence, and where shape tensors lie the next execution would write.
        self._in_step = bool(model.config.sequence_batching.state or self._shape_outputs)
        self._completions = Completions(
            f"{instance.name} answers", lambda: engines.cuda.use(instance.device_id), self._finish
        )

    def execute(self, batch: Batch) -> None:
        """Put the batch on the GPU; return when another may follow it there."""
        pipeline = self._pipeline
        assert pipeline is not None, "nothing is executed before an instance is made, or after it was closed"  # noqa: S101
        flight = pipeline.launch(batch)
        if self._in_step:
            self._finish(flight)
            return
        self._completions.put(flight)
        if not self._eager:
            # The next batch is formed as late as it can be put on the GPU: it is larger then.
            pipeline.await_inputs(flight)

    def is_ready(self) -> bool:
        """Say no once the GPU failed: it does not come back in this process."""
        return not self._broken

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
        """Return what TensorRT allocated; inputs and outputs lie in the server's own memory, which counts them."""
        return list(shared.memory()) if isinstance(shared, Engines) else ()

    def close(self) -> None:
        """Answer what is on its way, then free what the instance has. A second time is fine."""
        if self._pipeline is not None:
            self._completions.close()
            self._pipeline.close()
            self._pipeline = None

    @classmethod
    def unload(cls, shared: object) -> None:
        """Let go of the engines."""
        if isinstance(shared, Engines):
            shared.close()

    def _finish(self, flight: Flight) -> None:
        pipeline = self._pipeline
        assert pipeline is not None, "an instance is closed when its flights are over"  # noqa: S101
        batch = flight.batch
        try:
            responses = scatter(batch, self._answers(pipeline.landed(flight), batch))
        except Exception as error:
            self._broken = self._broken or isinstance(error, CudaFailure)
            failure = error if isinstance(error, TritonError) else Internal(str(error))
            responses = [InferResponse.failed(request, failure) for request in batch.requests]
        pipeline.release(flight)
        batch.respond(responses)

    def _answers(self, outputs: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """Take the size of the batch, which is the first value, from the shape tensors of a model that batches."""
        if not self._batched:
            return outputs
        for name in self._shape_outputs & outputs.keys():
            values = outputs[name].data
            if values[0] != batch.size:
                raise Internal(f"failed to retrieve the output shape values from binding '{self.instance.name}'")
            outputs[name] = Tensor.from_numpy(name, values[1:])
        return outputs


def _dla_core(model: ModelContext, instance: InstanceContext) -> int:
    if len(instance.secondary_devices) > 1:
        raise InvalidArgument(
            f"{instance.name} of model {model.name} must have either zero or or one secondary devices"
        )
    return instance.secondary_devices[0][1] if instance.secondary_devices else NO_DLA
