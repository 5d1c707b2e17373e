"""Memory for what travels to GPUs and back: the server's pools, and what of them a model may use."""

from __future__ import annotations

from tritonpy.device_memory.block import DeviceBlock
from tritonpy.device_memory.model_memory import ModelMemory
from tritonpy.device_memory.pools import MemoryPools

__all__ = ["DeviceBlock", "MemoryPools", "ModelMemory"]
