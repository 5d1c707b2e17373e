"""Backend class that runs batches in TensorFlow sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tritonpy import (
    Batch,
    InstanceContext,
    Internal,
    ModelContext,
    TritonError,
)
from tritonpy.execution import gather, scatter
from tritonpy_backend_kit.config_completion import log_batch_size, server_inputs
from tritonpy_backend_kit.shared_model import SharedModelBackend
from tritonpy_backend_tf.config_check import check_config
from tritonpy_backend_tf.config_completion import complete_config, needs_completion
from tritonpy_backend_tf.errors import to_triton_error
from tritonpy_backend_tf.execution import Execution
from tritonpy_backend_tf.model_source import DEFAULT_FILENAMES, PLATFORMS, is_saved_model
from tritonpy_backend_tf.options import TensorFlowOptions
from tritonpy_backend_tf.runtime import has_cuda
from tritonpy_backend_tf.session import SessionDevice
from tritonpy_backend_tf.shared_model import SharedModel, SharedSession
from tritonpy_backend_tf.signature import Signature

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class TensorFlowBackend(SharedModelBackend):
    """Runs SavedModels, GraphDefs and Keras files in TensorFlow sessions, on the CPU or on GPUs.

    All instances on a device share one session, so the weights are in memory once, unless
    MAX_SESSION_SHARE_COUNT limits sharing. Configuration parameters, graph levels and accelerators
    are those of Triton.
    """

    shared_class: ClassVar[type[SharedModel]] = SharedModel
    Options: ClassVar[type[TensorFlowOptions]] = TensorFlowOptions
    request_parameters: ClassVar[frozenset[str] | None] = frozenset()
    model_parameters: ClassVar[tuple[str, ...]] = (
        "MAX_SESSION_SHARE_COUNT",
        "TF_GRAPH_TAG",
        "TF_INIT_OPS_FILE",
        "TF_NUM_INTER_THREADS",
        "TF_NUM_INTRA_THREADS",
        "TF_SIGNATURE_DEF",
        "TF_USE_PER_SESSION_THREADS",
        "memory_limit_bytes",
        "precision",
    )
    default_filenames: ClassVar[tuple[str, ...]] = DEFAULT_FILENAMES
    platforms: ClassVar[tuple[str, ...]] = PLATFORMS
    # Triton runs two on the CPU. One session uses every core, and a second instance would only wait
    # for them (see the README).
    default_instance_count: ClassVar[int] = 1
    uses_gpu: ClassVar[bool] = has_cuda()

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration completed from the model file."""
        sessions = model.shared = SharedModel(model)
        try:
            if not needs_completion(model.config) and not is_saved_model(model.config):
                return model.config
            signature = sessions.signature()
        except Exception as error:
            raise _unable_to_complete(model.name, to_triton_error(error)) from error
        result = complete_config(model.config, signature, model.default_max_batch_size)
        log_batch_size(model, result)
        return result

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._sessions: SharedModel = model.shared
        self._session: SharedSession | None = None
        try:
            signature = self._sessions.signature()
            check_config(model.config, signature)
            device = instance.device_id if instance.kind == "GPU" else 0
            self._session = self._sessions.acquire(
                SessionDevice(instance.kind, device, instance.cores)
            )
            self._execution = _execution(model.config, signature, self._session)
        except Exception as error:
            self.close()
            raise to_triton_error(error) from error

    def execute(self, batch: Batch) -> None:
        """Run the batch; a TensorFlow error fails the whole batch with TensorFlow's text."""
        try:
            tensors = gather(batch)
            batch.stamp()
            outputs = self._execution(tensors)
        except Exception as error:
            raise to_triton_error(error) from error
        batch.stamp()
        batch.respond(scatter(batch, outputs))

    def close(self) -> None:
        """Release the session."""
        if self._session is not None:
            self._sessions.release(self._session)
            self._session = None


def _unable_to_complete(model: str, failure: TritonError) -> TritonError:
    if isinstance(failure, Internal):
        return Internal(
            f"unable to auto-complete model configuration for '{model}', failed to load model: "
            f"{failure.message}"
        )
    return failure


def _execution(
    config: ModelConfig, signature: Signature, shared_session: SharedSession
) -> Execution:
    states = config.sequence_batching.state
    shapes = {state.output_name: tuple(state.dims) for state in states}
    shapes.update({field.name: tuple(field.dims) for field in config.output})
    outputs = {name: signature.known_outputs[name] for name in shapes}
    scalars = {name: shapes[name] for name, info in outputs.items() if info.dims == ()}
    required = [
        *[field.name for field in config.input if not field.optional],
        *server_inputs(config),
    ]
    return Execution(
        shared_session.opened.make_callable, signature.known_inputs, outputs, scalars, required
    )
