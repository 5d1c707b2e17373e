from __future__ import annotations

from tritonpy import SERVER_METRICS, Nvml
from tritonpy_metrics_prometheus.exposition import text_format
from tritonpy_metrics_prometheus.gpu import GpuCollector

from .fake_nvml import MIB, FakeNvml, h100


def collector(nvml, clock=lambda: 0):
    return GpuCollector(Nvml(nvml, {gpu["uuid"]: gpu for gpu in nvml.gpus}), 1000, clock)


def lines(found):
    return [line for line in text_format(found.collect()).decode().splitlines() if not line.startswith("#")]


def test_all_families_have_triton_s_units():
    assert lines(collector(FakeNvml(h100()))) == [
        'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.37',
        f'nv_gpu_memory_total_bytes{{gpu_uuid="GPU-1"}} {80_000 * MIB}',
        f'nv_gpu_memory_used_bytes{{gpu_uuid="GPU-1"}} {512 * MIB}',
        'nv_gpu_power_usage{gpu_uuid="GPU-1"} 123.456',
        'nv_gpu_power_limit{gpu_uuid="GPU-1"} 700',
        'nv_energy_consumption{gpu_uuid="GPU-1"} 0',
    ]


def test_types_are_triton_s():
    kinds = {family.name: family.type for family in collector(FakeNvml(h100())).collect()}
    assert {name for name, kind in kinds.items() if kind == "counter"} == {"nv_energy_consumption"}
    assert set(kinds.values()) == {"gauge", "counter"}


def test_energy_counts_from_the_start():
    now, gpu = [0], h100()
    found = collector(FakeNvml(gpu), lambda: now[0])
    gpu["energy"] += 1500
    now[0] = 1000
    assert 'nv_energy_consumption{gpu_uuid="GPU-1"} 1.5' in lines(found)


def test_readings_are_taken_once_per_interval():
    now, nvml = [0], FakeNvml(h100())
    found = collector(nvml, lambda: now[0])
    for now[0] in (1, 999):
        lines(found)
    assert nvml.readings == 1
    now[0] = 1000
    lines(found)
    lines(found)
    assert nvml.readings == 2


def test_every_gpu_has_its_own_samples():
    found = lines(collector(FakeNvml(h100(), h100("GPU-2", utilization=100))))
    assert found[:2] == ['nv_gpu_utilization{gpu_uuid="GPU-1"} 0.37', 'nv_gpu_utilization{gpu_uuid="GPU-2"} 1']
    assert len(found) == 12


def test_unsupported_values_are_omitted():
    quiet = {"uuid": "GPU-2", "utilization": 5}
    found = lines(collector(FakeNvml(h100(), quiet)))
    assert [line for line in found if "GPU-2" in line] == ['nv_gpu_utilization{gpu_uuid="GPU-2"} 0.05']
    assert lines(collector(FakeNvml(quiet))) == ['nv_gpu_utilization{gpu_uuid="GPU-2"} 0.05']


def test_a_value_supported_later_counts_from_its_first_reading():
    now, gpu = [0], {"uuid": "GPU-1"}
    found = collector(FakeNvml(gpu), lambda: now[0])
    gpu["energy"] = 7000
    now[0] = 1000
    assert lines(found) == ['nv_energy_consumption{gpu_uuid="GPU-1"} 0']


def test_models_cannot_use_these_family_names():
    assert {family.name for family in collector(FakeNvml(h100())).collect()} <= SERVER_METRICS


def test_closing_shuts_the_library_down():
    nvml = FakeNvml(h100())
    nvml.nvmlInit()
    collector(nvml).close()
    assert nvml.open == 0
