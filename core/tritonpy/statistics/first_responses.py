"""How long clients waited for the first answer: the histogram of one model version."""

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


class FirstResponses:
    """Whole milliseconds from a request's arrival to its first answer, well or not; the bare end of a stream is no answer.

    Changed under the model's lock. Raises InvalidArgument for buckets that do not ascend.
    """

    def __init__(self, buckets: Sequence[float]) -> None:
        self._histogram = Histogram(buckets)
        self._begun: set[InferRequest] = set()

    def answered(self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int) -> None:
        """Take note of one answer."""
        if not response.empty and request not in self._begun:
            self._histogram.observe((now_ns - request.received_ns) // 1_000_000)
        if response.final:
            self._begun.discard(request)
        else:
            self._begun.add(request)

    def snapshot(self) -> HistogramSnapshot | None:
        """Return the buckets."""
        return self._histogram.snapshot({}).histogram


def buckets_of(config: ModelConfig) -> Sequence[float]:
    """Return the buckets that the model's `model_metrics` asks for, or Triton's; warns of families that have none to choose."""
    buckets: Sequence[float] = DEFAULT_BUCKETS
    for control in config.model_metrics.metric_control:
        if control.metric_identifier.family == FAMILY:
            buckets = list(control.histogram_options.buckets)
        else:
            log.warning(
                "model '%s': metric family '%s' in 'metric_identifier' has no buckets to choose; %s has",
                config.name, control.metric_identifier.family, FAMILY,
            )  # fmt: skip
    return buckets
