"""GPU discovery with nvidia-ml-py, which the extra `gpu` installs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from tritonpy import NvmlError, install_command, open_nvml
from tritonpy_metrics_prometheus.gpu import GpuCollector

log = logging.getLogger("tritonpy.metrics")

DRIVER = Path("/proc/driver/nvidia")


def open_gpus(environ: Mapping[str, str], interval_ns: int, clock: Callable[[], int]) -> GpuCollector | None:
    """Return the collector of the GPUs that frameworks see.

    Returns None without a visible GPU or without nvidia-ml-py.
    """
    try:
        nvml = open_nvml(environ)
    except ImportError:
        if DRIVER.exists():
            log.warning(
                "no GPU metrics: install nvidia-ml-py with: %s", install_command("tritonpy-metrics-prometheus[gpu]")
            )
        return None
    except NvmlError as error:
        log.warning("no GPU metrics: %s", error)
        return None
    return None if nvml is None else GpuCollector(nvml, interval_ns, clock)
