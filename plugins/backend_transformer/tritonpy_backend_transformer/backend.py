"""The backend itself: ties a model to the server's requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tritonpy import Backend, Batch, InstanceContext, MemoryUsage, ModelContext
from tritonpy_backend_transformer.asking import PARAMETERS
from tritonpy_backend_transformer.embedding import Embedder
from tritonpy_backend_transformer.fields import check, completed
from tritonpy_backend_transformer.folder import DEFAULT_FILENAMES, Kind
from tritonpy_backend_transformer.models import Models
from tritonpy_backend_transformer.opening import has_cuda
from tritonpy_backend_transformer.studio import Studio

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class TransformerBackend(Backend):
    """Runs a transformer in CTranslate2, on the CPU or on NVIDIA GPUs: one that generates text, or an encoder that makes vectors of texts.

    All instances of a device share one copy of the weights. A model that generates takes requests at any time: they wait for its lanes, or join what
    runs there.
    """

    default_filenames: ClassVar[tuple[str, ...]] = DEFAULT_FILENAMES
    request_parameters: ClassVar[frozenset[str] | None] = PARAMETERS
    uses_gpu: ClassVar[bool] = has_cuda()

    @classmethod
    def auto_complete(cls, model: ModelContext) -> ModelConfig:
        """Return the configuration with the inputs and outputs that the model can have."""
        models = model.shared = Models(model)
        return completed(model.config, models.fields, model.default_max_batch_size)

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return what the instances share."""
        return model.shared or Models(model)

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        models: Models = model.shared
        check(model.config, models.fields)
        library = models.acquire(instance, model.config)
        if models.folder.kind is Kind.ENCODER:
            self._work: Embedder | Studio | None = Embedder(models.folder, models.settings, library, model)
        else:
            self._work = Studio(models.folder, models.settings, library, model, instance)

    def execute(self, batch: Batch) -> None:
        """Answer the batch; one of a model that generates is answered later, and the instance is free for more."""
        assert self._work is not None, "a closed instance is given nothing: this is a bug"  # noqa: S101
        self._work.answer(batch)

    def close(self) -> None:
        """End the lanes and let go of the library's object: the weights go with the last one who holds it."""
        if self._work is not None:
            self._work.close()
            self._work = None

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
        """Return the bytes of the weights on each device."""
        return shared.memory_usage() if isinstance(shared, Models) else ()

    @classmethod
    def unload(cls, shared: object) -> None:
        """Let go of the model."""
        if isinstance(shared, Models):
            shared.close()
