from __future__ import annotations

import logging
import sys

import pytest

import tritonpy
import tritonpy_device_cuda
from tritonpy import InvalidArgument
from tritonpy.config import DeviceSettings
from tritonpy.execution import DeviceBlock, DeviceReading, DeviceUnavailable
from tritonpy.frontend import CudaRegion
from tritonpy_device_cuda import cuda_calls, device, gpus, nvml
from tritonpy_device_cuda.device import CudaDevice
from tritonpy_testing import DeviceContract

from .fake_nvml import GIB, FakeNvml, gpu


@pytest.fixture
def machine(monkeypatch):
    def make(*there, **library):
        for module in (gpus, cuda_calls, device):
            monkeypatch.setattr(module, "visible_gpus", lambda: list(range(len(there))))
        made = FakeNvml(*there, **library)
        monkeypatch.setitem(sys.modules, "pynvml", made)
        for name in ("CUDA_VISIBLE_DEVICES", "TRITON_SERVER_CPU_ONLY"):
            monkeypatch.delenv(name, raising=False)
        return made

    return make


class TestCudaDevice(DeviceContract):
    plugin_class = CudaDevice
    plugin = tritonpy_device_cuda
    name = "cuda"


class TestTwoGpus(DeviceContract):
    plugin_class = CudaDevice

    @pytest.fixture(autouse=True)
    def _machine(self, machine):
        machine(gpu("GPU-a"), gpu("GPU-b"))


def test_supported_gpus_have_pools(machine):
    machine(gpu("GPU-a", capability=(7, 0)), gpu("GPU-b", used=41))
    made = CudaDevice(DeviceSettings(cuda_memory_pool_byte_size={"1": 1024}))
    assert made.ids == [1]
    totals = [
        family for family in made.metrics() if family.name == "nv_cuda_memory_pool_total_bytes"
    ]
    assert [(each.labels, each.value) for each in totals[0].metrics] == [({"device": "1"}, 1024)]
    assert made.memory(1) == (41 * GIB, 80 * GIB)


def test_a_worker_uses_the_gpus_of_the_server_without_a_query(machine, monkeypatch):
    machine(gpu("GPU-a"), gpu("GPU-b"))
    monkeypatch.setattr(gpus, "open_nvml", None)
    assert CudaDevice(DeviceSettings(), [1]).ids == [1]


def test_memory_of_a_process_is_that_of_the_driver(machine):
    machine(gpu(processes=[(7, 100)]))
    assert CudaDevice(DeviceSettings()).process_memory(7) == {0: 100}


def test_a_monitor_reads_each_gpu(machine):
    reported = {"utilization": 37, "power": 123_456, "limit": 700_000, "energy": 5000}
    library = machine(gpu("GPU-a"), gpu("GPU-b", used=1, **reported))
    with CudaDevice(DeviceSettings()).monitor() as monitor:
        assert library.open == 1
        assert monitor.uuids == ["GPU-a", "GPU-b"]
        read = monitor.read()
    assert library.open == 0
    assert read["GPU-b"] == DeviceReading(0.37, 80 * GIB, GIB, 123.456, 700, 5)
    assert list(read) == ["GPU-a", "GPU-b"]


def test_a_monitor_omits_what_a_gpu_does_not_report(machine, caplog):
    machine({"uuid": "GPU-a"})
    with caplog.at_level(logging.DEBUG), CudaDevice(DeviceSettings()).monitor() as monitor:
        assert monitor.read() == {"GPU-a": DeviceReading()}
    assert "GPU GPU-a does not report energy: Not Supported" in caplog.text


def test_a_gpu_has_no_monitor_without_a_driver(machine):
    machine(gpu(), driver=False)
    assert CudaDevice(DeviceSettings()).monitor() is None


@pytest.mark.parametrize(
    ("name", "value"), [("CUDA_VISIBLE_DEVICES", ""), ("TRITON_SERVER_CPU_ONLY", "1")]
)
def test_a_gpu_that_is_not_visible_has_no_monitor(machine, monkeypatch, name, value):
    library = machine(gpu())
    monkeypatch.setenv(name, value)
    assert CudaDevice(DeviceSettings()).monitor() is None
    assert library.open == 0


def test_a_failing_library_is_named(machine):
    library = machine({})
    with pytest.raises(DeviceUnavailable, match="Not Supported"):
        CudaDevice(DeviceSettings()).monitor()
    assert library.open == 0


def test_a_missing_package_is_named(machine, monkeypatch):
    machine(gpu())
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(
        DeviceUnavailable, match=r"install nvidia-ml-py with: .*tritonpy-device-cuda\[gpu\]"
    ):
        CudaDevice(DeviceSettings()).monitor()


def test_a_wrong_handle_is_refused(machine, monkeypatch):
    machine()
    with pytest.raises(
        InvalidArgument, match=r"^failed to register shared memory region: invalid args$"
    ):
        CudaDevice(DeviceSettings()).open_region(CudaRegion("r", 0, 8), b"")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("Nvml", nvml.Nvml),
        ("NvmlError", nvml.NvmlError),
        ("open_nvml", nvml.open_nvml),
        ("gpu_memory", gpus.gpu_memory),
        ("GpuMemoryUnavailable", DeviceUnavailable),
        ("DeviceBlock", DeviceBlock),
    ],
)
def test_names_that_were_in_the_core_are_deprecated(name, target):
    with pytest.warns(DeprecationWarning, match=f"tritonpy.{name} is now called "):
        assert getattr(tritonpy, name) is target
