"""Limits of the memory in use on GPUs when instances are added."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy.api.contexts import InstanceContext
from tritonpy.api.device import Device, DeviceUnavailable, NoDevice
from tritonpy_config.problem import ConfigProblem
from tritonpy_config.server import InvalidServerConfig
from tritonpy_types.errors import Unavailable


class GpuLimits:
    """The fractions of each GPU's memory that may be in use, by any process.

    They are in the settings of `gpus`. Raises `InvalidServerConfig` if a GPU has a limit but its
    memory cannot be queried.
    """

    def __init__(self, gpus: Device | None = None) -> None:
        self._gpus = gpus = gpus or NoDevice()
        self._limits = gpus.settings.gpu_limits()
        problems = []
        for gpu in sorted(self._limits.keys() & set(gpus.ids)):
            try:
                gpus.memory(gpu)
            except DeviceUnavailable as error:
                problems.append(
                    ConfigProblem(
                        f"devices.model_load_gpu_limit.{gpu}",
                        f"the memory in use on GPU {gpu} is unknown: {error}",
                    )
                )
        if problems:
            raise InvalidServerConfig(problems)

    def check(self, instances: Sequence[InstanceContext]) -> None:
        """Raise `Unavailable` if a GPU exceeds its limit after `instances` were built.

        As in Triton, the check comes after building. Otherwise the last instance could take all
        remaining memory.
        """
        for instance in instances:
            if instance.kind == "GPU" and self._full(instance.device_id):
                raise Unavailable(
                    f"can not create model '{instance.name}': memory limit set for GPU "
                    f"{instance.device_id} has exceeded, "
                    "model loading is rejected."
                )

    def _full(self, gpu: int) -> bool:
        if gpu not in self._limits:
            return False
        used, total = self._gpus.memory(gpu)
        return used > int(total * self._limits[gpu])
