"""Which GPUs this process can use."""

from __future__ import annotations

import os
from pathlib import Path


def visible_gpus() -> list[int]:
    """Return the ids of the NVIDIA GPUs as the frameworks count them: 0 to n-1, after CUDA_VISIBLE_DEVICES.

    Reads the driver's own listing; nothing is imported and no context is created.
    """
    count = sum(1 for _ in Path("/proc/driver/nvidia/gpus").glob("*"))
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        named = [device for device in chosen.split(",") if device.strip() and not device.strip().startswith("-")]
        count = min(count, len(named))
    return list(range(count))
