from __future__ import annotations

from google.protobuf import text_format

from tritonpy.api.backend import InstanceContext
from tritonpy.api.engine import Duration
from tritonpy.errors import Internal, QueueTimeout
from tritonpy.runners.slot import Slot
from tritonpy.statistics.gpu_counters import GpuCounters, configured_gpus
from tritonpy.types import Batch, InferRequest, InferResponse
from tritonpy.types.cache_lookup import CacheLookup
from tritonpy_protos.model_config_pb2 import ModelConfig

GROUPS = "instance_group [{ kind: KIND_GPU gpus: [1, 0] }, { kind: KIND_GPU gpus: [1] }, { kind: KIND_CPU count: 2 }]"


def executed(counters: GpuCounters, kind: str, device: int, rows: int = 1) -> InferRequest:
    request = InferRequest("m", {}, None, batch_size=rows)
    batch = Batch([request], instance=Slot(InstanceContext("i", kind, device, 0)), start_ns=10)
    batch.input_end_ns, batch.infer_end_ns = 20, 40
    request.batch = batch
    counters.executed(batch)
    return request


def shares(counters: GpuCounters) -> dict[int | None, tuple[int, int, int, int]]:
    found = {}
    for share in counters.snapshot("m", 1):
        statistics = share.statistics
        success = statistics.inference_stats.success.count
        found[share.gpu] = (
            statistics.execution_count,
            success,
            statistics.inference_count,
            sum(share.failures.values()),
        )
    return found


def test_only_the_gpus_of_a_model_count() -> None:
    assert configured_gpus(text_format.Parse(GROUPS, ModelConfig())) == [0, 1]
    assert configured_gpus(ModelConfig()) == []


def test_each_gpu_counts_its_executions() -> None:
    counters = GpuCounters([0, 1])
    counters.responded(executed(counters, "GPU", 0, rows=4), InferResponse(()), 0, 50)
    failed = executed(counters, "GPU", 1)
    counters.responded(failed, InferResponse.failed(failed, Internal("broken")), 0, 50)
    counters.responded(executed(counters, "CPU", 0), InferResponse(()), 0, 50)
    assert shares(counters) == {None: (1, 1, 1, 0), 0: (1, 1, 4, 0), 1: (1, 0, 0, 1)}


def test_requests_without_an_instance_have_no_gpu() -> None:
    counters, request = GpuCounters([0]), InferRequest("m", {}, None)
    counters.responded(request, InferResponse.failed(request, QueueTimeout("too late")), 0, 50)
    assert shares(counters) == {None: (0, 0, 0, 1), 0: (0, 0, 0, 0)}


def test_a_request_counts_when_it_ends() -> None:
    counters = GpuCounters([0])
    request = executed(counters, "GPU", 0)
    counters.responded(request, InferResponse((), final=False), 0, 50)
    assert shares(counters)[0] == (1, 0, 0, 0)
    counters.responded(request, InferResponse((), empty=True), 0, 60)
    assert shares(counters)[0] == (1, 1, 1, 0)


def test_hits_and_misses_of_the_cache_belong_to_no_gpu() -> None:
    counters = GpuCounters([0])
    hit, miss = InferRequest("m", {}, None), executed(counters, "GPU", 0)
    hit.cache, miss.cache = CacheLookup(0, hit=True, lookup_ns=5), CacheLookup(0, lookup_ns=3, insertion_ns=4)
    for request in (hit, miss):
        counters.responded(request, InferResponse(()), 0, 50)
    none, gpu = (share.statistics.inference_stats for share in counters.snapshot("m", 1))
    assert (none.success.count, none.cache_hit, none.cache_miss) == (1, Duration(1, 5), Duration(1, 7))
    assert (gpu.success.count, gpu.cache_hit, gpu.cache_miss) == (1, Duration(), Duration())
