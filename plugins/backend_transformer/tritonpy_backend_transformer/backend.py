"""The class of the backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tritonpy import Backend, Batch, InstanceContext, MemoryUsage, ModelContext
from tritonpy_backend_transformer.devices import has_cuda
from tritonpy_backend_transformer.embedding import Embedder
from tritonpy_backend_transformer.fields import check_config, complete_config
from tritonpy_backend_transformer.model_folder import DEFAULT_FILENAMES, FolderKind
from tritonpy_backend_transformer.request_reader import PARAMETERS
from tritonpy_backend_transformer.shared_models import SharedModels
from tritonpy_backend_transformer.text_generator import TextGenerator

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class TransformerBackend(Backend):
    """Runs transformers in CTranslate2 on the CPU or on NVIDIA GPUs.

    A model either generates text or computes embeddings. All instances of a device share one copy
    of the weights. A generating instance accepts requests at any time; they wait for a lane, or
    join a running batch.
    """

    model_parameters: ClassVar[tuple[str, ...]] = (
        "add_special_tokens",
        "flash_attention",
        "inter_op_thread_count",
        "intra_op_thread_count",
        "max_model_len",
        "max_num_seqs",
        "memory_limit_bytes",
        "normalize",
        "pooling",
        "precision",
        "sampling_parameters",
        "tensor_parallel",
    )
    default_filenames: ClassVar[tuple[str, ...]] = DEFAULT_FILENAMES
    request_parameters: ClassVar[frozenset[str] | None] = PARAMETERS
    uses_gpu: ClassVar[bool] = has_cuda()

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration, completed with the inputs and outputs of the model."""
        models = model.shared = SharedModels(model)
        return complete_config(model.config, models.fields, model.default_max_batch_size)

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return the state that the instances share."""
        return model.shared or SharedModels(model)

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        models: SharedModels = model.shared
        check_config(model.config, models.fields)
        library = models.acquire(instance, model.config)
        if models.folder.kind is FolderKind.ENCODER:
            self._executor: Embedder | TextGenerator | None = Embedder(
                models.folder, models.settings, library, model
            )
        else:
            self._executor = TextGenerator(models.folder, models.settings, library, model, instance)

    def execute(self, batch: Batch) -> None:
        """Execute the batch.

        Generated text is sent later; the instance can accept more requests meanwhile.
        """
        assert self._executor is not None, "bug: a closed instance received a batch"  # noqa: S101
        self._executor.execute(batch)

    def close(self) -> None:
        """Stop the lanes and release the model. Its last owner frees the weights."""
        if self._executor is not None:
            self._executor.close()
            self._executor = None

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
        """Return the size of the weights on each device."""
        return shared.memory_usage() if isinstance(shared, SharedModels) else ()

    @classmethod
    def unload(cls, shared: object) -> None:
        """Release the model."""
        if isinstance(shared, SharedModels):
            shared.close()
