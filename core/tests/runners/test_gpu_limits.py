from __future__ import annotations

import pytest

from core.tests.toys.device import ToyDevice
from tritonpy.api.contexts import InstanceContext
from tritonpy.runners.gpu_limits import GpuLimits
from tritonpy_config.server import InvalidServerConfig
from tritonpy_config.server.sections import DeviceSettings
from tritonpy_types.errors import Unavailable

ON_CPU, ON_0, ON_1 = (
    InstanceContext(f"m_0_{at}", *where, at)
    for at, where in enumerate([("CPU", 0), ("GPU", 0), ("GPU", 1)])
)


def limits(
    allowed: dict[str, float], used: dict[int, float], ids: list[int] | None = None
) -> GpuLimits:
    return GpuLimits(ToyDevice(DeviceSettings(model_load_gpu_limit=allowed), ids, used))


def test_a_gpu_beyond_its_limit_is_refused_with_tritons_text() -> None:
    given = limits({"0": 0.5, "1": 0.9}, {0: 0.51, 1: 0.89})
    given.check([ON_CPU, ON_1])
    with pytest.raises(Unavailable) as refusal:
        given.check([ON_CPU, ON_1, ON_0])
    assert refusal.value.message == (
        "can not create model 'm_0_1': memory limit set for GPU 0 has exceeded, model loading is rejected."
    )


@pytest.mark.parametrize(
    ("limit", "used", "full"), [(0.5, 0.5, False), (1, 1, False), (0, 0, False), (0, 1e-9, True)]
)
def test_a_limit_may_be_reached_exactly(limit: float, used: float, full: bool) -> None:
    assert limits({"0": limit}, {0: used})._full(0) is full


def test_without_a_limit_the_memory_is_not_queried() -> None:
    GpuLimits().check([ON_CPU, ON_0])
    limits({"0": 0.5}, {0: 1}).check([ON_1])


def test_a_limit_of_a_missing_gpu_is_ignored() -> None:
    limits({"3": 0.5}, {}, [0]).check([ON_0])


def test_a_limit_on_a_gpu_of_unknown_memory_is_an_error_at_startup() -> None:
    with pytest.raises(InvalidServerConfig) as refusal:
        limits({"0": 0.5, "1": 0.5}, {1: 0})
    assert [str(problem) for problem in refusal.value.problems] == [
        "devices.model_load_gpu_limit.0: the memory in use on GPU 0 is unknown: nvidia-ml-py is not there"
    ]
