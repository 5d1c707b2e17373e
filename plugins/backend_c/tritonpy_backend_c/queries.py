"""Queries of backends to the server: the state of models, model control, and metrics."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonpy import Internal, InvalidArgument, ModelContext, NotFound, Unavailable
from tritonpy.metrics import Metric, MetricFamily, MetricKind, ModelMetrics

_KINDS = (MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM)
_STRING, _BYTES = 0, 4  # TRITONSERVER_ParameterType
_ONE_TO_ONE, _DECOUPLED = 1, 2
_UNKNOWN_BATCHING, _FIRST_DIM = 1, 2
_Arguments = Mapping[str, Any]


class BackendQueries:
    """Runs queries by their verbs; a result is a text. Metrics are referred to by numbers."""

    def __init__(self, models: Mapping[int, ModelContext]) -> None:
        self._models = models
        self._owners: dict[int, ModelMetrics] = {}
        self._numbers = itertools.count(1)
        self._families: dict[int, _Family] = {}
        self._metrics: dict[int, _Metric] = {}
        self._waiting: dict[str, Callable[[ModelContext, _Arguments], str]] = {
            "server_is_live": lambda model, _: _flag(model.engine.is_live()),
            "server_is_ready": lambda model, _: _flag(model.engine.is_ready()),
            "model_is_ready": _model_is_ready,
            "batch_properties": _batch_properties,
            "transaction_properties": _transaction_properties,
            "load_model": _load_model,
            "unload_model": lambda model, given: _unload_model(model, given["name"], False),
            "unload_model_and_dependents": lambda model, given: _unload_model(
                model, given["name"], True
            ),
        }
        self._immediate: dict[str, Callable[[int, _Arguments], str]] = {
            "metric_family": self._metric_family,
            "drop_metric_family": lambda _, given: self._drop(self._families, given),
            "metric": self._metric,
            "drop_metric": lambda _, given: self._drop(self._metrics, given),
            "metric_value": self._metric_value,
        }

    def add_owner(self, number: int, metrics: ModelMetrics) -> None:
        """Let `metrics` create those of an owner that is no model; `forget` removes it."""
        self._owners[number] = metrics

    def may_wait(self, verb: str) -> bool:
        """Return whether the query may take long, so that it needs its own thread."""
        return verb in self._waiting

    def run(self, model: int, verb: str, arguments: _Arguments) -> str:
        """Return the result of a query of the model with a number. Raises its error."""
        if verb in self._immediate:
            return self._immediate[verb](model, arguments)
        return self._waiting[verb](self._context(model), arguments)

    def change_metric(self, number: int, change: int, value: float) -> None:
        """Increment (0), set (1) or observe (2) a metric; errors were found by the library."""
        if number in self._metrics:
            metric = self._metrics[number].handle
            (metric.increment, metric.set, metric.observe)[change](value)

    def forget(self, model: int) -> None:
        """Forget the metrics of a model that is unloaded, or of another owner."""
        self._owners.pop(model, None)
        self._metrics = {
            number: each for number, each in self._metrics.items() if each.family.model != model
        }
        self._families = {
            number: each for number, each in self._families.items() if each.model != model
        }

    def restore_metrics(self, model: int) -> None:
        """Create the metrics of a model again, for its new context.

        Those that a backend creates while it completes a configuration end with the completion.
        """
        for family in self._families.values():
            if family.model == model:
                family.create(self._context(model).metrics)
        for metric in self._metrics.values():
            if metric.family.model == model:
                metric.create()

    def _context(self, number: int) -> ModelContext:
        model = self._models.get(number)
        if model is None:
            raise Unavailable("the model is not loaded")
        return model

    def _metric_family(self, model: int, given: _Arguments) -> str:
        family = _Family(model, given["name"], given["description"], _KINDS[given["kind"]])
        family.create(self._owners.get(model) or self._context(model).metrics)
        number = next(self._numbers)
        self._families[number] = family
        return str(number)

    def _metric(self, _model: int, given: _Arguments) -> str:
        if given["family"] not in self._families:
            raise Internal("Could not create metric. MetricFamily has been invalidated.")
        labels = {}
        for name, kind, value in given["labels"]:
            if kind != _STRING:
                raise InvalidArgument(
                    f"Parameter [{name}] must have a type of TRITONSERVER_PARAMETER_STRING to be "
                    "added as a label."
                )
            labels[name] = value
        metric = _Metric(self._families[given["family"]], labels, given["buckets"])
        metric.create()
        number = next(self._numbers)
        self._metrics[number] = metric
        return str(number)

    def _metric_value(self, _model: int, given: _Arguments) -> str:
        if given["number"] not in self._metrics:
            raise Internal("Could not get metric value. Metric has been invalidated.")
        return repr(self._metrics[given["number"]].handle.value())

    def _drop(self, table: Any, given: _Arguments) -> str:
        found = table.pop(given["number"], None)
        if found is not None:
            found.handle.drop()
        return ""


class _Family:
    """A metric family of a backend, with what is needed to create it again."""

    handle: MetricFamily

    def __init__(self, model: int, name: str, description: str, kind: MetricKind) -> None:
        self.model = model
        self._arguments = name, description, kind

    def create(self, metrics: ModelMetrics) -> None:
        self.handle = metrics.family(*self._arguments)


class _Metric:
    """A metric of a backend, with what is needed to create it again."""

    handle: Metric

    def __init__(
        self, family: _Family, labels: Mapping[str, str], buckets: Sequence[float] | None
    ) -> None:
        self.family = family
        self._arguments = labels, buckets

    def create(self) -> None:
        self.handle = self.family.handle.metric(*self._arguments)


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _model_is_ready(model: ModelContext, given: _Arguments) -> str:
    try:
        return _flag(model.engine.is_model_ready(given["name"], given["version"]))
    except (InvalidArgument, NotFound):
        return "false"


def _batch_properties(model: ModelContext, given: _Arguments) -> str:
    config = model.engine.model_config(given["name"], given["version"])
    return str(_FIRST_DIM if config.max_batch_size > 0 else _UNKNOWN_BATCHING)


def _transaction_properties(model: ModelContext, given: _Arguments) -> str:
    config = model.engine.model_config(given["name"], given["version"])
    return str(_DECOUPLED if config.model_transaction_policy.decoupled else _ONE_TO_ONE)


def _load_model(model: ModelContext, given: _Arguments) -> str:
    config, files = None, {}
    for name, kind, value in given["parameters"]:
        if kind == _BYTES:
            files[name] = bytes.fromhex(value)
        elif name == "config":
            config = value
        else:
            raise InvalidArgument(f"unexpected parameter '{name}' of a load request")
    model.engine.load_model(given["name"], config, files or None)
    return ""


def _unload_model(model: ModelContext, name: str, dependents: bool) -> str:
    model.engine.unload_model(name, dependents)
    return ""
