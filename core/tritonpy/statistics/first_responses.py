"""The histogram of times to the first response of one model version."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tritonpy.custom_metrics import HistogramSnapshot
from tritonpy.custom_metrics.cells import Histogram
from tritonpy.types import InferRequest, InferResponse
from tritonpy_protos.model_config_pb2 import ModelConfig

log = logging.getLogger("tritonpy.model")

FAMILY = "nv_inference_first_response_histogram_ms"
DEFAULT_BUCKETS = (100.0, 500.0, 2000.0, 5000.0)


class FirstResponseHistogram:
    """Milliseconds from a request's arrival to its first response, also for errors.

    An empty final response does not count. It changes under the model's lock. Raises
    InvalidArgument if the buckets do not ascend.
    """

    def __init__(self, buckets: Sequence[float]) -> None:
        self._histogram = Histogram(buckets)
        self._started: set[InferRequest] = set()

    def responded(self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int) -> None:
        """Count one response."""
        if not response.empty and request not in self._started:
            self._histogram.observe((now_ns - request.received_ns) // 1_000_000)
        if response.final:
            self._started.discard(request)
        else:
            self._started.add(request)

    def snapshot(self) -> HistogramSnapshot | None:
        """Return the histogram."""
        return self._histogram.snapshot({}).histogram


def configured_buckets(config: ModelConfig) -> Sequence[float]:
    """Return the buckets of the model's `model_metrics`, or Triton's.

    Warns of families without buckets.
    """
    buckets: Sequence[float] = DEFAULT_BUCKETS
    for control in config.model_metrics.metric_control:
        if control.metric_identifier.family == FAMILY:
            buckets = list(control.histogram_options.buckets)
        else:
            log.warning(
                "model '%s': metric family '%s' in 'metric_identifier' has no configurable buckets; %s has them",
                config.name, control.metric_identifier.family, FAMILY,
            )  # fmt: skip
    return buckets
