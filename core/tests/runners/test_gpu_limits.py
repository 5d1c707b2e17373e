from __future__ import annotations

import pytest

from tritonpy.api.backend import InstanceContext
from tritonpy.config.server import InvalidServerConfig
from tritonpy.devices import GpuMemoryUnavailable
from tritonpy.errors import Unavailable
from tritonpy.runners.gpu_limits import GpuLimits

TOTAL = 80 << 30
ON_CPU, ON_0, ON_1 = (
    InstanceContext(f"m_0_{at}", *where, at) for at, where in enumerate([("CPU", 0), ("GPU", 0), ("GPU", 1)])
)


class Gpus:
    """The used fraction of each GPU's memory."""

    def __init__(self, **used: float) -> None:
        self.used = {int(gpu.removeprefix("gpu")): part for gpu, part in used.items()}

    def __call__(self, gpu: int) -> tuple[int, int]:
        if gpu not in self.used:
            raise GpuMemoryUnavailable("nvidia-ml-py is not there")
        return int(self.used[gpu] * TOTAL), TOTAL


def test_a_gpu_beyond_its_limit_is_refused_with_tritons_text() -> None:
    limits = GpuLimits({0: 0.5, 1: 0.9}, [0, 1], Gpus(gpu0=0.51, gpu1=0.89))
    limits.check([ON_CPU, ON_1])
    with pytest.raises(Unavailable) as refusal:
        limits.check([ON_CPU, ON_1, ON_0])
    assert refusal.value.message == (
        "can not create model 'm_0_1': memory limit set for GPU 0 has exceeded, model loading is rejected."
    )


@pytest.mark.parametrize(("limit", "used", "full"), [(0.5, 0.5, False), (1, 1, False), (0, 0, False), (0, 1e-9, True)])
def test_a_limit_may_be_reached_exactly(limit: float, used: float, full: bool) -> None:
    assert GpuLimits({0: limit}, [0], Gpus(gpu0=used))._full(0) is full


def test_without_a_limit_the_memory_is_not_queried() -> None:
    GpuLimits().check([ON_CPU, ON_0])
    GpuLimits({0: 0.5}, [0, 1], Gpus(gpu0=1)).check([ON_1])


def test_a_limit_of_a_missing_gpu_is_ignored() -> None:
    GpuLimits({3: 0.5}, [0], Gpus()).check([ON_0])


def test_a_limit_on_a_gpu_of_unknown_memory_is_an_error_at_startup() -> None:
    with pytest.raises(InvalidServerConfig) as refusal:
        GpuLimits({0: 0.5, 1: 0.5}, [0, 1], Gpus(gpu1=0))
    assert [str(problem) for problem in refusal.value.problems] == [
        "devices.model_load_gpu_limit.0: the memory in use on GPU 0 is unknown: nvidia-ml-py is not there"
    ]
