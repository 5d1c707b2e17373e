"""Memory for inputs and outputs on GPUs: the server's pools and a model's view of them."""

from __future__ import annotations

from tritonpy.device_memory.block import DeviceBlock
from tritonpy.device_memory.model_memory import ModelMemory
from tritonpy.device_memory.pools import MemoryPools

__all__ = ["DeviceBlock", "MemoryPools", "ModelMemory"]
