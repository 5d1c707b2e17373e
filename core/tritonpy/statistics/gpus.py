"""The counts of a model version by the GPU of the instance that executed: the metrics label them so."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy.api.engine import GpuShare
from tritonpy.statistics.counters import Counters, Succeeded
from tritonpy.types import Batch, InferRequest, InferResponse
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup


def gpus_of(config: ModelConfig) -> list[int]:
    """Return the numbers of the GPUs that the model has instances on."""
    on_gpus = [group for group in config.instance_group if group.kind == ModelInstanceGroup.KIND_GPU]
    return sorted({number for group in on_gpus for number in group.gpus})


class GpuCounters:
    """Plain numbers per GPU, and of what no GPU executed; changed under the model's lock. Together they are the model's."""

    def __init__(self, gpus: Sequence[int]) -> None:
        self._counters: dict[int | None, Counters] = {gpu: Counters() for gpu in (None, *gpus)}

    def executed(self, batch: Batch) -> None:
        """Count one execution."""
        self._counters[_gpu_of(batch)].executions += 1

    def answered(self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int) -> None:
        """Count one request when it ends."""
        if not response.final:
            return
        batch = request.batch
        counters, total_ns = self._counters[_gpu_of(batch)], now_ns - request.received_ns
        if response.error is not None:
            counters.failed(response.error.reason, total_ns)
            return
        look = request.cache
        if look is not None and look.hit:
            counters.cache_hit(total_ns, look.start_ns - request.queued_ns, look.lookup_ns)
            return
        if look is not None:
            self._counters[None].cache_missed(look.cache_ns)  # no GPU had a part in that
        queue_ns = (now_ns if batch is None else batch.start_ns) - request.queued_ns
        counters.succeeded(Succeeded(batch, now_ns, 1, request.batch_size, total_ns, queue_ns))

    def snapshot(self, name: str, version: int) -> list[GpuShare]:
        """Return the share of each GPU, that of none first."""
        return [
            GpuShare(gpu, counters.snapshot(name, version, {}), dict(counters.failures))
            for gpu, counters in self._counters.items()
        ]


def _gpu_of(batch: Batch | None) -> int | None:
    if batch is None:
        return None
    context = batch.instance.context
    return int(context.device_id) if context.kind == "GPU" else None
