"""How full GPUs may be for further instances."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from tritonpy.api.backend import InstanceContext
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server import InvalidServerConfig
from tritonpy.devices import NobodyTells, gpu_memory
from tritonpy.errors import Unavailable

_UNLIMITED: Mapping[int, float] = {}


class GpuLimits:
    """`limits` are the parts of each GPU's memory that may be in use, by whomever; `memory(gpu)` tells used and total bytes.

    Raises InvalidServerConfig where one of `gpus` has a limit and nobody tells how full it is.
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
            except NobodyTells as error:
                problems.append(
                    ConfigProblem(f"devices.model_load_gpu_limit.{gpu}", f"GPU {gpu} does not tell: {error}")
                )
        if problems:
            raise InvalidServerConfig(problems)

    def check(self, instances: Sequence[InstanceContext]) -> None:
        """Raise Unavailable where a GPU is fuller than it may be, now that `instances` are built.

        Afterwards and not before, as in Triton: who looks before would let the last one take all that is left.
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
