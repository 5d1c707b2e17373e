"""The base class of backends whose instances share one opened model, and its usual options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Protocol

import msgspec

from tritonpy import Backend, MemoryUsage, ModelContext, Options


class SharedModel(Protocol):
    """A model file that is opened once per model version, and what was made from it."""

    def memory_usage(self) -> Iterable[MemoryUsage]:
        """Return the memory that instances share."""

    def close(self) -> None:
        """Drop the references to what was opened; each part is freed with its last user."""


class SharedModelBackend(Backend):
    """A backend whose instances share one object per model version.

    A class names it in `shared_class`, which takes the `ModelContext`. `auto_complete` may open it
    first and keep it in `model.shared`.

        class ToyBackend(SharedModelBackend):
            shared_class = ToyFile

            def __init__(self, model, instance):
                super().__init__(model, instance)
                self.network = model.shared.network()
    """

    shared_class: ClassVar[Any]

    @classmethod
    def load(cls, model: ModelContext) -> object:
        """Return the object that the instances share."""
        return model.shared or cls.shared_class(model)

    @classmethod
    def shared_memory_usage(cls, shared: Any) -> Sequence[MemoryUsage]:
        """Return the memory of the shared object."""
        return () if shared is None else list(shared.memory_usage())

    @classmethod
    def unload(cls, shared: Any) -> None:
        """Close the shared object."""
        if shared is not None:
            shared.close()


class BatchSizeOptions(Options, frozen=True):
    """The option of backends that choose a batch size for models that set none."""

    default_max_batch_size: Annotated[
        int | None,
        msgspec.Meta(
            description="max_batch_size of models that support batching and set none "
            "(default: the server's)."
        ),
    ] = None
