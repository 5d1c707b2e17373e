"""Rules for the model's metric settings."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy.config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import ModelConfig


def metrics_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the missing fields of each `metric_control`."""
    for index, control in enumerate(config.model_metrics.metric_control):
        path = f"model_metrics.metric_control[{index}]"
        if not control.HasField("metric_identifier"):
            yield ConfigProblem(path, "metric control must specify 'metric_identifier'")
        elif not control.metric_identifier.family:
            yield ConfigProblem(f"{path}.metric_identifier", "metric identifier must specify non-empty 'family'")
        if not control.HasField("histogram_options"):
            yield ConfigProblem(path, "metric control must specify 'histogram_options'")
        elif not control.histogram_options.buckets:
            yield ConfigProblem(f"{path}.histogram_options", "histogram options must specify non-empty 'buckets'")
