"""Metrics of the program, which appear beside those of its servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonpy import Engine
from tritonpy.metrics import CustomMetrics, FamilySnapshot, ModelMetrics
from tritonpy.metrics import MetricKind as ServerKind
from tritonpy_tritonserver_api.errors import translated
from tritonpy_tritonserver_api.names import MetricKind

_registry = CustomMetrics()
_metrics = ModelMetrics(_registry)
_KINDS = {MetricKind.COUNTER: ServerKind.COUNTER, MetricKind.GAUGE: ServerKind.GAUGE}


class MetricFamily:
    """Metrics of one kind and name, which differ in their labels."""

    def __init__(self, kind: MetricKind, name: str, description: str) -> None:
        """Raise `InvalidArgumentError` or `AlreadyExistsError` for a name that cannot be used."""
        self.kind = kind
        with translated():
            self._handle = _metrics.family(name, description, _KINDS[kind])

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._handle.drop()


class Metric:
    """A number that a program counts or sets. It ends with its family."""

    def __init__(self, family: MetricFamily, labels: dict[str, str] | None = None) -> None:
        """Raise `InvalidArgumentError` for invalid labels."""
        self._family = family
        with translated():
            self._handle = family._handle.metric(labels)

    @property
    def kind(self) -> MetricKind:
        """The kind of the metric."""
        return self._family.kind

    @property
    def value(self) -> float:
        """The current value."""
        with translated():
            return self._handle.value()

    def increment(self, value: float) -> None:
        """Add to the value. Raises `InvalidArgumentError` for a counter that would decrease."""
        with translated():
            self._handle.increment(value)

    def set_value(self, value: float) -> None:
        """Set the value of a gauge. Raises `UnsupportedError` for a counter."""
        with translated():
            self._handle.set(value)


def measured(engine: Engine) -> Any:
    """Return an engine whose metrics include those of the program."""
    return _MeasuredEngine(engine)


class _MeasuredEngine:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        """Return the metrics of models and of the program."""
        return [*self._engine.custom_metrics(), *_registry.snapshot()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
