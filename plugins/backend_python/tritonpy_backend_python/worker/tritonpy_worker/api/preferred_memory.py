"""The preferred memory for outputs of a model's requests."""

from __future__ import annotations

from .arguments import argument_type_error, is_integer
from .enumeration import Enumeration


class MemoryType(Enumeration):
    """Types of memory, with the numbers of Triton's bindings (not those of its C API)."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1


TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU

_SIGNATURE = (
    "c_python_backend_utils.PreferredMemory("
    "preferred_memory_type: c_python_backend_utils.MemoryType, preferred_device_id: int = 0)"
)


class PreferredMemory:
    """A hint: the type of memory and the number of the device."""

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "device_id", "memory_type")

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0) -> None:
        """Raises `TypeError` for arguments of wrong types."""
        if not isinstance(preferred_memory_type, MemoryType) or not is_integer(
            preferred_device_id, -(1 << 63), 64
        ):
            raise argument_type_error(
                "__init__", _SIGNATURE, preferred_memory_type, preferred_device_id
            )
        self.memory_type = preferred_memory_type
        self.device_id = int(preferred_device_id)
