from __future__ import annotations

import pytest

from tritonpy.execution import DeviceReading, DeviceUnavailable
from tritonpy.metrics import SERVER_METRICS
from tritonpy_metrics_prometheus import gpu as finding
from tritonpy_metrics_prometheus.exposition import text_format
from tritonpy_metrics_prometheus.gpu import GpuCollector, open_gpus

from .fake_device import MIB, FakeDevice, FakeMonitor, h100


def collector(gpus, clock=lambda: 0):
    return GpuCollector(FakeMonitor(gpus), 1000, clock)


def lines(found):
    return [
        line
        for line in text_format(found.collect()).decode().splitlines()
        if not line.startswith("#")
    ]


def test_all_families_have_triton_s_units():
    assert lines(collector({"GPU-1": h100()})) == [
        'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.37',
        f'nv_gpu_memory_total_bytes{{gpu_uuid="GPU-1"}} {80_000 * MIB}',
        f'nv_gpu_memory_used_bytes{{gpu_uuid="GPU-1"}} {512 * MIB}',
        'nv_gpu_power_usage{gpu_uuid="GPU-1"} 123.456',
        'nv_gpu_power_limit{gpu_uuid="GPU-1"} 700',
        'nv_energy_consumption{gpu_uuid="GPU-1"} 0',
    ]


def test_types_are_triton_s():
    kinds = {family.name: family.type for family in collector({"GPU-1": h100()}).collect()}
    assert {name for name, kind in kinds.items() if kind == "counter"} == {"nv_energy_consumption"}
    assert set(kinds.values()) == {"gauge", "counter"}


def test_energy_counts_from_the_start():
    now, gpus = [0], {"GPU-1": h100(energy=5000)}
    found = collector(gpus, lambda: now[0])
    gpus["GPU-1"] = h100(energy=5001.5)
    now[0] = 1000
    assert 'nv_energy_consumption{gpu_uuid="GPU-1"} 1.5' in lines(found)


def test_readings_are_taken_once_per_interval():
    now, monitor = [0], FakeMonitor({"GPU-1": h100()})
    found = GpuCollector(monitor, 1000, lambda: now[0])
    for now[0] in (1, 999):
        lines(found)
    assert monitor.readings == 1
    now[0] = 1000
    lines(found)
    lines(found)
    assert monitor.readings == 2


def test_every_gpu_has_its_own_samples():
    found = lines(collector({"GPU-1": h100(), "GPU-2": h100(utilization=1)}))
    assert found[:2] == [
        'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.37',
        'nv_gpu_utilization{gpu_uuid="GPU-2"} 1',
    ]
    assert len(found) == 12


def test_unsupported_values_are_omitted():
    quiet = DeviceReading(utilization=0.05)
    found = lines(collector({"GPU-1": h100(), "GPU-2": quiet}))
    assert [line for line in found if "GPU-2" in line] == [
        'nv_gpu_utilization{gpu_uuid="GPU-2"} 0.05'
    ]
    assert lines(collector({"GPU-2": quiet})) == ['nv_gpu_utilization{gpu_uuid="GPU-2"} 0.05']


def test_a_value_supported_later_counts_from_its_first_reading():
    now, gpus = [0], {"GPU-1": DeviceReading()}
    found = collector(gpus, lambda: now[0])
    gpus["GPU-1"] = DeviceReading(energy=7)
    now[0] = 1000
    assert lines(found) == ['nv_energy_consumption{gpu_uuid="GPU-1"} 0']


def test_models_cannot_use_these_family_names():
    assert {family.name for family in collector({"GPU-1": h100()}).collect()} <= SERVER_METRICS


def test_closing_closes_the_monitor():
    monitor = FakeMonitor({})
    GpuCollector(monitor, 1000, lambda: 0).close()
    assert not monitor.is_open


def test_every_gpu_of_the_device_is_found():
    found = open_gpus(FakeDevice(FakeMonitor({"GPU-a": h100(), "GPU-b": h100()})), 1000, lambda: 0)
    assert found.uuids == ["GPU-a", "GPU-b"]


def test_without_a_visible_gpu_there_is_no_collector():
    assert open_gpus(FakeDevice(None), 1000, lambda: 0) is None


@pytest.mark.parametrize("has_driver", [True, False])
def test_the_reason_is_logged_on_a_machine_with_a_driver(caplog, monkeypatch, tmp_path, has_driver):
    monkeypatch.setattr(finding, "DRIVER", tmp_path if has_driver else tmp_path / "none")
    assert open_gpus(FakeDevice(DeviceUnavailable("GPU is lost")), 1000, lambda: 0) is None
    assert ("no GPU metrics: GPU is lost" in caplog.text) is has_driver
