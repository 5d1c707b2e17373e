"""The kinds of metrics that a model can create."""

from __future__ import annotations

import enum


class MetricKind(enum.Enum):
    """The kinds of metrics; the values are Prometheus' type names."""

    COUNTER = "counter"  # can only increase
    GAUGE = "gauge"
    HISTOGRAM = "histogram"

    @property
    def triton_name(self) -> str:
        """The name of Triton's constant, as in its error texts."""
        return f"TRITONSERVER_METRIC_KIND_{self.name}"
