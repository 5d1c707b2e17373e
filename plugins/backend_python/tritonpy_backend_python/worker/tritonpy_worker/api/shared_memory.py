"""How much shared memory of the model is free."""

from __future__ import annotations

from ..host import current


class SharedMemory:
    """The memory that carries a model's tensors to the server."""

    __module__ = "c_python_backend_utils"

    def free_memory(self) -> int:
        """Return how many bytes this process holds for large outputs and does not use now: there is no pool of a fixed size."""
        return current().free_shared_memory()
