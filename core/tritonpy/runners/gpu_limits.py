"""Limits of the memory in use on GPUs when instances are added."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from tritonpy.api.backend import InstanceContext
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server import InvalidServerConfig
from tritonpy.devices import GpuMemoryUnavailable, gpu_memory
from tritonpy.errors import Unavailable

_UNLIMITED: Mapping[int, float] = {}


class GpuLimits:
    """The fractions of each GPU's memory that may be in use, by any process.

    `memory(gpu)` returns the used and total bytes. Raises `InvalidServerConfig` if one of `gpus`
    has a limit but its memory cannot be queried.
    """

    def __init__(
        self,
        limits: Mapping[int, float] = _UNLIMITED,
        gpus: Collection[int] = (),
        memory: Callable[[int], tuple[int, int]] = gpu_memory,
    ) -> None:
        self._limits = limits
        self._memory = memory
        problems = []
        for gpu in sorted(limits.keys() & set(gpus)):
            try:
                memory(gpu)
            except GpuMemoryUnavailable as error:
                problems.append(
                    ConfigProblem(
                        f"devices.model_load_gpu_limit.{gpu}", f"the memory in use on GPU {gpu} is unknown: {error}"
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
                    f"can not create model '{instance.name}': memory limit set for GPU {instance.device_id} has exceeded, "
                    "model loading is rejected."
                )

    def _full(self, gpu: int) -> bool:
        if gpu not in self._limits:
            return False
        used, total = self._memory(gpu)
        return used > int(total * self._limits[gpu])
