from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, ModelMemory, hookimpl
from tritonpy.execution import Device, DeviceMonitor, DeviceReading, DeviceUnavailable
from tritonpy.metrics import FamilySnapshot, MetricKind
from tritonpy_testing import DeviceContract


class Monitor(DeviceMonitor):
    uuids = ("GPU-a", "GPU-b")

    def read(self):
        return dict.fromkeys(self.uuids, DeviceReading(utilization=0.5))

    def close(self):
        """Close nothing."""


class Simulated(Device):
    def visible(self):
        return [0, 1]

    def memory(self, gpu):
        if gpu not in self.visible():
            raise DeviceUnavailable(f"there is no GPU {gpu}")
        return 0, 1 << 30

    def monitor(self):
        return Monitor()

    def model_memory(self, policy):
        return ModelMemory()

    def open_region(self, region, handle):
        raise InvalidArgument("failed to register shared memory region: invalid args")


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_devices():
        return {"simulated": Simulated}


class TestSimulated(DeviceContract):
    plugin_class = Simulated
    plugin = Plugin
    name = "simulated"


class CountsFromOne(Simulated):
    def visible(self):
        return [1, 2]


class IgnoresIds(Simulated):
    def __init__(self, settings, ids=None):
        super().__init__(settings)


class Overfull(Simulated):
    def memory(self, gpu):
        return 2 << 30, 1 << 30


class Guessing(Simulated):
    def process_memory(self, pid):
        return {0: 8}


class HalfMonitored(Simulated):
    def monitor(self):
        monitor = Monitor()
        monitor.read = lambda: {"GPU-a": DeviceReading()}
        return monitor


class Imaginary(Simulated):
    def model_memory(self, policy):
        memory = ModelMemory()
        memory.on_device = lambda gpu, byte_size: None
        return memory


class Trusting(Simulated):
    def open_region(self, region, handle):
        return None


class OwnMetrics(Simulated):
    def metrics(self):
        return [*super().metrics(), FamilySnapshot("my_pool", "My pool", MetricKind.GAUGE, [])]


BROKEN = {
    CountsFromOne: "test_its_gpus_are_visible_and_in_order",
    IgnoresIds: "test_a_worker_uses_the_gpus_that_it_is_given",
    Overfull: "test_memory_in_use_is_part_of_the_total_or_has_a_reason",
    Guessing: "test_an_unknown_process_uses_no_gpu",
    HalfMonitored: "test_a_monitor_reads_every_gpu_by_its_uuid",
    Imaginary: "test_model_memory_is_free_at_first_and_belongs_to_existing_gpus",
    Trusting: "test_a_handle_that_is_none_is_refused_as_triton_refuses_it",
    OwnMetrics: "test_metrics_are_those_of_triton",
}


@pytest.mark.parametrize("device", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_device_fails(failures, device):
    contract = type("Broken", (DeviceContract,), {"plugin_class": device})
    assert BROKEN[device] in failures(contract)
