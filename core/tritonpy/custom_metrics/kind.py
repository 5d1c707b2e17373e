"""The kinds of metric that a model can make."""

from __future__ import annotations

import enum


class MetricKind(enum.Enum):
    """What a metric's number means; the values are Prometheus' type names."""

    COUNTER = "counter"  # only grows
    GAUGE = "gauge"
    HISTOGRAM = "histogram"

    @property
    def triton_name(self) -> str:
        """The name of Triton's constant, as its error texts have it."""
        return f"TRITONSERVER_METRIC_KIND_{self.name}"
