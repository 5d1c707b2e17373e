"""Finds the GPUs through nvidia-ml-py, which the extra `gpu` installs; without a GPU or without that package there are none."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tritonpy_metrics_prometheus.gpu import GpuCollector

log = logging.getLogger("tritonpy.metrics")

DRIVER = Path("/proc/driver/nvidia")
CPU_ONLY = "TRITON_SERVER_CPU_ONLY"
CHOSEN = "CUDA_VISIBLE_DEVICES"


def open_gpus(environ: Mapping[str, str], interval_ns: int, clock: Callable[[], int]) -> GpuCollector | None:
    """Return the collector of the GPUs that frameworks see, None where there are none."""
    if CPU_ONLY in environ:
        return None
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        if DRIVER.exists():
            log.warning(
                "no metrics of GPUs: they need nvidia-ml-py, see 'pip install tritonpy-metrics-prometheus[gpu]'"
            )
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        log.debug("no metrics of GPUs: %s", error)
        return None
    try:
        gpus = visible(_all(nvml), environ.get(CHOSEN))
    except nvml.NVMLError as error:
        log.warning("no metrics of GPUs: %s", error)
        gpus = {}
    if not gpus:
        nvml.nvmlShutdown()
        return None
    return GpuCollector(nvml, gpus, interval_ns, clock)


def visible(gpus: Mapping[str, Any], chosen: str | None) -> dict[str, Any]:
    """Return those of `gpus`, by UUID in the order of their numbers, that CUDA_VISIBLE_DEVICES chooses.

    It names numbers or beginnings of UUIDs; as for CUDA, what follows a name of nothing does not count. None chooses all.
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


def _all(nvml: Any) -> dict[str, Any]:
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    return {_text(nvml.nvmlDeviceGetUUID(handle)): handle for handle in handles}


def _text(uuid: str | bytes) -> str:
    return uuid.decode() if isinstance(uuid, bytes) else uuid  # early versions of nvidia-ml-py return bytes
