"""The device `cuda`: NVIDIA GPUs, their memory pools, and CUDA shared memory of clients.

Start at `device`. Only `cuda_calls` and `nvml` call NVIDIA's libraries.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_devices() -> Mapping[str, str]:
    """Return the device by its kind; its module is imported at startup."""
    return {"cuda": "tritonpy_device_cuda.device:CudaDevice"}
