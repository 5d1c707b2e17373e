"""Access to NVIDIA's management library (NVML), for the GPUs that frameworks see.

It comes with nvidia-ml-py, which the extra `gpu` installs.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

CPU_ONLY = "TRITON_SERVER_CPU_ONLY"
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
_V2 = "nvmlMemory_v2"  # the first version counts memory reserved by the driver as used


class NvmlError(Exception):
    """An NVML call failed; the text is the library's own."""


class Nvml:
    """The open library, as a context manager that calls `close` at the end.

    `library` is the module. `handles` are the GPUs' handles by UUID, in the order of the numbers
    that frameworks use. Methods raise NvmlError, also for an unknown GPU.
    """

    def __init__(self, library: Any, handles: Mapping[str, Any]) -> None:
        self.library = library
        self.handles = handles

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, *_raised: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        self.close()

    def memory(self, gpu: int) -> tuple[int, int]:
        """Return used and total bytes of a GPU, for all processes."""
        found = self._call("nvmlDeviceGetMemoryInfo", gpu, getattr(self.library, _V2))
        return int(found.used), int(found.total)

    def compute_capability(self, gpu: int) -> tuple[int, int]:
        """Return the major and minor number."""
        major, minor = self._call("nvmlDeviceGetCudaComputeCapability", gpu)
        return int(major), int(minor)

    def memory_of(self, pid: int, gpu: int) -> int:
        """Return how many bytes a process uses on a GPU.

        It is 0 if the driver does not report it, or knows the process by another number
        (containers).
        """
        processes = self._call("nvmlDeviceGetComputeRunningProcesses", gpu)
        return sum(each.usedGpuMemory or 0 for each in processes if each.pid == pid)

    def close(self) -> None:
        """Close the library; no method may be called afterwards."""
        self.library.nvmlShutdown()

    def _call(self, function: str, gpu: int, *arguments: Any) -> Any:
        handles = list(self.handles.values())
        if gpu >= len(handles):
            raise NvmlError(f"there is no GPU {gpu}")
        try:
            return getattr(self.library, function)(handles[gpu], *arguments)
        except self.library.NVMLError as error:
            raise NvmlError(str(error)) from error


def open_nvml(environ: Mapping[str, str]) -> Nvml | None:
    """Return the open library; None without a driver or without a visible GPU.

    Raises ImportError if nvidia-ml-py is not installed and NvmlError if the library fails.
    """
    if CPU_ONLY in environ:
        return None
    library = importlib.import_module("pynvml")
    with suppress(library.NVMLError):
        library.nvmlInit()
        try:
            handles = visible(_all(library), environ.get(VISIBLE_DEVICES))
        except library.NVMLError as error:
            library.nvmlShutdown()
            raise NvmlError(str(error)) from error
        if handles:
            return Nvml(library, handles)
        library.nvmlShutdown()
    return None


def visible(gpus: Mapping[str, Any], chosen: str | None) -> dict[str, Any]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES selects, by UUID in the order of their numbers.

    The variable contains numbers or prefixes of UUIDs. As in CUDA, entries after an unknown one are
    ignored. None selects all.
    """
    if chosen is None:
        return dict(gpus)
    found: dict[str, Any] = {}
    for device in chosen.split(","):
        uuid = _uuid(list(gpus), device.strip())
        if uuid is None:
            break
        found[uuid] = gpus[uuid]
    return found


def _uuid(uuids: list[str], device: str) -> str | None:
    if device.isdecimal():
        return uuids[int(device)] if int(device) < len(uuids) else None
    return next((uuid for uuid in uuids if device and uuid.startswith(device)), None)


def _all(library: Any) -> dict[str, Any]:
    handles = [
        library.nvmlDeviceGetHandleByIndex(index) for index in range(library.nvmlDeviceGetCount())
    ]
    return {_text(library.nvmlDeviceGetUUID(handle)): handle for handle in handles}


def _text(uuid: str | bytes) -> str:
    # early versions of nvidia-ml-py return bytes
    return uuid.decode() if isinstance(uuid, bytes) else uuid
