"""The backend itself: ties a model's sessions to the server's requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tritonpy import Backend, Batch, InstanceContext, Internal, MemoryUsage, ModelContext, TritonError, gather, scatter
from tritonpy_backend_tf.check import check
from tritonpy_backend_tf.completion import completed, made_by_the_server, needs_completion
from tritonpy_backend_tf.execution import Execution
from tritonpy_backend_tf.failures import failure_of
from tritonpy_backend_tf.options import TensorFlowOptions
from tritonpy_backend_tf.runtime import has_cuda
from tritonpy_backend_tf.session import Device
from tritonpy_backend_tf.sessions import Sessions, Share
from tritonpy_backend_tf.signature import Signature
from tritonpy_backend_tf.sources import DEFAULT_FILENAMES, PLATFORMS, tells_without_tensorflow

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class TensorFlowBackend(Backend):
    """Runs SavedModels, GraphDefs and Keras files in sessions of TensorFlow, on the CPU or on GPUs.

    All instances of a device share one session, so that a model's weights are in memory once, unless MAX_SESSION_SHARE_COUNT says otherwise. Parameters,
    graph levels and accelerators of the configuration are those of Triton.
    """

    Options: ClassVar[type[TensorFlowOptions]] = TensorFlowOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    default_filenames: ClassVar[tuple[str, ...]] = DEFAULT_FILENAMES
    platforms: ClassVar[tuple[str, ...]] = PLATFORMS
    # Triton runs two on the CPU. One session uses every core, and a second instance only waits for them: see the README.
    default_instance_count: ClassVar[int] = 1
    uses_gpu: ClassVar[bool] = has_cuda()

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration with what the model's file says."""
        sessions = model.shared = Sessions(model)
        try:
            if not needs_completion(model.config) and not tells_without_tensorflow(model.config):
                return model.config
            signature = sessions.signature()
        except Exception as error:
            raise _unable_to_complete(model.name, failure_of(error)) from error
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
        self._sessions: Sessions = model.shared
        self._share: Share | None = None
        try:
            signature = self._sessions.signature()
            check(model.config, signature)
            device = instance.device_id if instance.kind == "GPU" else 0
            self._share = self._sessions.acquire(Device(instance.kind, device, instance.cores))
            self._execution = _execution(model.config, signature, self._share)
        except Exception as error:
            self.close()
            raise failure_of(error) from error

    def execute(self, batch: Batch) -> None:
        """Run the batch; an error of TensorFlow fails all of it with TensorFlow's text."""
        try:
            tensors = gather(batch)
            batch.stamp()
            outputs = self._execution(tensors)
        except Exception as error:
            raise failure_of(error) from error
        batch.stamp()
        batch.respond(scatter(batch, outputs))

    def close(self) -> None:
        """Give the session back."""
        if self._share is not None:
            self._sessions.release(self._share)
            self._share = None

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
        """Return what the weights take."""
        return shared.memory() if isinstance(shared, Sessions) else ()

    @classmethod
    def unload(cls, shared: object) -> None:
        """Let go of the model's file."""
        if isinstance(shared, Sessions):
            shared.close()


def _unable_to_complete(model: str, failure: TritonError) -> TritonError:
    if isinstance(failure, Internal):
        return Internal(
            f"unable to auto-complete model configuration for '{model}', failed to load model: {failure.message}"
        )
    return failure


def _execution(config: ModelConfig, signature: Signature, share: Share) -> Execution:
    states = config.sequence_batching.state
    shapes = {state.output_name: tuple(state.dims) for state in states}
    shapes.update({field.name: tuple(field.dims) for field in config.output})
    outputs = {name: signature.known_outputs[name] for name in shapes}
    scalars = {name: shapes[name] for name, info in outputs.items() if info.dims == ()}
    required = [*[field.name for field in config.input if not field.optional], *made_by_the_server(config)]
    return Execution(share.opened.prepare, signature.known_inputs, outputs, scalars, required)
