from __future__ import annotations

import sys

import pytest

from core.tests.fake_nvml import FakeNvml, gpu
from tritonpy import devices
from tritonpy.api.backend import InstanceContext
from tritonpy.config.server import InvalidServerConfig
from tritonpy.config.server.sections import DeviceSettings
from tritonpy.errors import Unavailable
from tritonpy.repository.gpus import Gpus


@pytest.fixture
def machine(monkeypatch):
    def make(*gpus):
        monkeypatch.setattr(devices, "visible_gpus", lambda: list(range(len(gpus))))
        monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(*gpus))
        for name in ("CUDA_VISIBLE_DEVICES", "TRITON_SERVER_CPU_ONLY"):
            monkeypatch.delenv(name, raising=False)

    return make


def test_there_are_no_gpus_by_default():
    gpus = Gpus()
    assert (gpus.ids, gpus.min_compute_capability) == ([], 7.5)


def test_supported_gpus_have_their_limits_and_pools(machine):
    machine(gpu("GPU-a", capability=(7, 0)), gpu("GPU-b", used=41))
    settings = DeviceSettings(model_load_gpu_limit={"0": 0.0, "1": 0.5}, cuda_memory_pool_byte_size={"1": 1024})
    gpus = Gpus.of_machine(settings)
    assert gpus.ids == [1]
    totals = [family for family in gpus.pools.metrics() if family.name == "nv_cuda_memory_pool_total_bytes"]
    assert [(each.labels, each.value) for each in totals[0].metrics] == [({"device": "1"}, 1024)]
    with pytest.raises(Unavailable, match="memory limit set for GPU 1 has exceeded"):
        gpus.limits.check([InstanceContext("m_0_0", "GPU", 1, 0)])


def test_a_limit_that_cannot_be_monitored_is_an_error(machine, monkeypatch):
    machine(gpu())
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert Gpus.of_machine(DeviceSettings()).ids == [0]
    with pytest.raises(InvalidServerConfig, match=r"devices.model_load_gpu_limit.0"):
        Gpus.of_machine(DeviceSettings(model_load_gpu_limit={"0": 0.5}))
