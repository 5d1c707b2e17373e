from __future__ import annotations

from tritonpy.config import DeviceSettings
from tritonpy.metrics import SERVER_METRICS, MetricKind
from tritonpy_device_cuda.memory_pools import MemoryPools
from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

from .fake_cuda import FakeCuda

POLICY = ModelOptimizationPolicy()
MIB = 1 << 20


def metric_values(pools):
    return {
        (family.name, *each.labels.values()): each.value
        for family in pools.metrics()
        for each in family.metrics
    }


def test_without_gpus_the_pool_has_its_size_and_is_not_allocated_as_in_triton():
    def no_cuda():
        raise AssertionError("CUDA was started")

    pools = MemoryPools(DeviceSettings(), [], no_cuda)
    assert metric_values(pools) == {
        ("nv_pinned_memory_pool_total_bytes",): 256 * MIB, ("nv_pinned_memory_pool_used_bytes",): 0
    }  # fmt: skip
    assert pools.of_model(POLICY).pinned_input is None
    pools.close()


def test_cuda_starts_with_the_first_block():
    started = []
    pools = MemoryPools(DeviceSettings(), [0], lambda: started.append(1) or FakeCuda())
    model = pools.of_model(POLICY)
    metric_values(pools)
    assert started == []
    kept = [model.pinned_input("IN", "FP32", (8,)), model.on_device(0, 8)]
    assert started == [1]
    assert len(kept) == 2


def test_lent_memory_is_reported():
    settings = DeviceSettings(
        pinned_memory_pool_byte_size=1024, cuda_memory_pool_byte_size={"1": MIB}
    )
    pools = MemoryPools(settings, [0, 1], lambda: cuda)
    cuda, model = FakeCuda(), pools.of_model(POLICY)
    kept = [
        model.pinned_input("IN", "UINT8", (1000,)),
        model.on_device(1, 10),
        model.on_device(0, 20),
    ]
    assert model.pinned_input("IN", "UINT8", (1000,)).base is None  # ordinary memory
    assert metric_values(pools) == {
        ("nv_pinned_memory_pool_total_bytes",): 1024, ("nv_pinned_memory_pool_used_bytes",): 1000, ("nv_pinned_memory_pool_fallback_count",): 1,
        ("nv_cuda_memory_pool_total_bytes", "0"): 64 * MIB, ("nv_cuda_memory_pool_total_bytes", "1"): MIB,
        ("nv_cuda_memory_pool_used_bytes", "0"): 20, ("nv_cuda_memory_pool_used_bytes", "1"): 10,
    }  # fmt: skip
    del kept
    assert sum(value for (name, *_), value in metric_values(pools).items() if "used" in name) == 0
    assert cuda.allocations == {"pinned": 1, 0: 1, 1: 1}
    pools.close()
    assert (cuda.pinned, cuda.on_gpu(0), cuda.on_gpu(1)) == ([], [], [])


def test_descriptions_of_pinned_memory_metrics_are_tritons():
    families = MemoryPools(DeviceSettings()).metrics()
    assert [(family.name, family.description) for family in families] == [
        ("nv_pinned_memory_pool_total_bytes", "Pinned memory pool total memory size, in bytes"),
        ("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes"),
    ]


def test_metric_names_are_reserved_for_the_server():
    families = MemoryPools(DeviceSettings(), [0], FakeCuda).metrics()
    assert {family.name for family in families} <= SERVER_METRICS
    kinds = {family.name: family.kind for family in families if family.kind is not MetricKind.GAUGE}
    assert kinds == {"nv_pinned_memory_pool_fallback_count": MetricKind.COUNTER}
