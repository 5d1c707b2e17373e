"""The free shared memory of a model."""

from __future__ import annotations

from ..host import current


class SharedMemory:
    """The shared memory that carries a model's tensors to the server."""

    __module__ = "c_python_backend_utils"

    def free_memory(self) -> int:
        """Return the unused bytes that this process keeps for large outputs.

        There is no fixed-size pool.
        """
        return current().free_shared_memory()
