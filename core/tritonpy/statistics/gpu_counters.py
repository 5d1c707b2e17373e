"""Counts of a model version per GPU, for labels of metrics."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy.api.engine import GpuShare
from tritonpy.statistics.counters import Counters, SucceededRequests
from tritonpy.types import Batch, InferRequest, InferResponse
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup


def configured_gpus(config: ModelConfig) -> list[int]:
    """Return the numbers of the GPUs with instances of the model."""
    on_gpus = [group for group in config.instance_group if group.kind == ModelInstanceGroup.KIND_GPU]
    return sorted({number for group in on_gpus for number in group.gpus})


class GpuCounters:
    """Counts per GPU, and without a GPU (None). Their sum is the model's counts.

    They change under the model's lock.
    """

    def __init__(self, gpus: Sequence[int]) -> None:
        self._counters: dict[int | None, Counters] = {gpu: Counters() for gpu in (None, *gpus)}

    def executed(self, batch: Batch) -> None:
        """Count one execution."""
        self._counters[_gpu_of(batch)].executions += 1

    def responded(self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int) -> None:
        """Count a request at its final response."""
        if not response.final:
            return
        batch = request.batch
        counters, total_ns = self._counters[_gpu_of(batch)], now_ns - request.received_ns
        if response.error is not None:
            counters.failed(response.error.reason, total_ns)
            return
        lookup = request.cache
        if lookup is not None and lookup.hit:
            counters.cache_hit(total_ns, lookup.start_ns - request.queued_ns, lookup.lookup_ns)
            return
        if lookup is not None:
            self._counters[None].cache_missed(lookup.cache_ns)  # not a GPU's work
        queue_ns = (now_ns if batch is None else batch.start_ns) - request.queued_ns
        counters.succeeded(SucceededRequests(batch, now_ns, 1, request.batch_size, total_ns, queue_ns))

    def snapshot(self, name: str, version: int) -> list[GpuShare]:
        """Return the counts of each GPU, first those without one."""
        return [
            GpuShare(gpu, counters.snapshot(name, version, {}), dict(counters.failures))
            for gpu, counters in self._counters.items()
        ]


def _gpu_of(batch: Batch | None) -> int | None:
    if batch is None:
        return None
    context = batch.instance.context
    return int(context.device_id) if context.kind == "GPU" else None
