"""The GPUs that this process can use, and their memory usage."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from tritonpy.execution import DeviceUnavailable
from tritonpy.plugins import install_command
from tritonpy_device_cuda.nvml import Nvml, NvmlError, open_nvml

log = logging.getLogger("tritonpy.devices")


def visible_gpus() -> list[int]:
    """Return the ids of the NVIDIA GPUs as frameworks count them.

    They are 0 to n-1; CUDA_VISIBLE_DEVICES limits n. The function reads the driver's list of GPUs.
    It loads no library and creates no CUDA context.
    """
    count = sum(1 for _ in Path("/proc/driver/nvidia/gpus").glob("*"))
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        named = [
            device
            for device in chosen.split(",")
            if device.strip() and not device.strip().startswith("-")
        ]
        count = min(count, len(named))
    return list(range(count))


def supported_gpus(minimum: float) -> list[int]:
    """Return the visible GPUs with at least this compute capability, or an unknown one."""
    gpus = visible_gpus()
    if not gpus or not minimum:
        return gpus
    try:
        nvml = open_nvml(os.environ)
    except (ImportError, NvmlError) as error:
        log.info("the compute capability of the GPUs is not known: %s", error)
        nvml = None
    if nvml is None:
        return gpus
    with nvml:
        return [gpu for gpu in gpus if _is_new_enough(nvml, gpu, minimum)]


def gpu_memory(gpu: int) -> tuple[int, int]:
    """Return used and total bytes of a GPU, for all processes. Raises DeviceUnavailable."""
    try:
        nvml = open_nvml(os.environ)
    except ImportError as error:
        raise DeviceUnavailable(
            f"nvidia-ml-py is not installed ({install_command('tritonpy-device-cuda[gpu]')}): "
            f"{error}"
        ) from error
    except NvmlError as error:
        raise DeviceUnavailable(str(error)) from error
    if nvml is None:
        raise DeviceUnavailable("there is no GPU")
    with nvml:
        try:
            return nvml.memory(gpu)
        except NvmlError as error:
            raise DeviceUnavailable(str(error)) from error


def gpu_memory_of(pid: int) -> dict[int, int]:
    """Return how many bytes a process uses on each GPU, as far as known.

    GPUs that it does not use are omitted.
    """
    gpus = visible_gpus()
    try:
        nvml = open_nvml(os.environ) if gpus else None
        if nvml is None:
            return {}
        with nvml:
            found = {gpu: nvml.memory_of(pid, gpu) for gpu in gpus}
    except (ImportError, NvmlError) as error:
        log.debug("the GPU memory of process %d is not known: %s", pid, error)
        return {}
    return {gpu: size for gpu, size in found.items() if size}


def _is_new_enough(nvml: Nvml, gpu: int, minimum: float) -> bool:
    try:
        major, minor = nvml.compute_capability(gpu)
    except NvmlError as error:
        log.info("the compute capability of GPU %d is not known: %s", gpu, error)
        return True
    return major + minor / 10 > minimum - 0.01  # tolerates rounding of the two floats
