"""The GPUs of a server, their memory limits and memory pools."""

from __future__ import annotations

from dataclasses import dataclass, field

from tritonpy.config.server.sections import MIN_COMPUTE_CAPABILITY, DeviceSettings
from tritonpy.device_memory import MemoryPools
from tritonpy.devices import supported_gpus
from tritonpy.runners.gpu_limits import GpuLimits


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs that the server uses (`ids`), none by default, with their pools and limits."""

    ids: list[int] = field(default_factory=list)
    min_compute_capability: float = MIN_COMPUTE_CAPABILITY
    pools: MemoryPools = field(default_factory=MemoryPools)
    limits: GpuLimits = field(default_factory=GpuLimits)

    @classmethod
    def of_machine(cls, settings: DeviceSettings) -> Gpus:
        """Return the GPUs of this machine that `settings` allow.

        Raises `InvalidServerConfig` for a limit that cannot be monitored.
        """
        minimum = settings.min_supported_compute_capability
        ids = supported_gpus(minimum)
        return cls(ids, minimum, MemoryPools(settings, ids), GpuLimits(settings.gpu_limits(), ids))
