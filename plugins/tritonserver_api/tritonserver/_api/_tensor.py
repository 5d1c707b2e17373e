"""The classes of tensors."""

from __future__ import annotations

from tritonpy_tritonserver_api.names import DataType, MemoryType
from tritonpy_tritonserver_api.tensor import MemoryBuffer, Tensor

__all__ = ["DataType", "MemoryBuffer", "MemoryType", "Tensor"]
