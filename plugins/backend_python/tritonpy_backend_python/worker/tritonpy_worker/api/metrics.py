"""Custom metrics of models in the server's /metrics."""

from __future__ import annotations

import json
import weakref
from threading import Lock
from typing import TYPE_CHECKING, Any

from .. import host as hosts
from .arguments import argument_type_error, cast_error, text
from .enumeration import Enumeration
from .errors import TritonModelException
from .queries import query, refusal

if TYPE_CHECKING:
    from ..host import Host

_GONE = (
    "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. "
    "The 'MetricFamily' object should "
    "be deleted AFTER its corresponding 'Metric' objects have been deleted."
)
_SIGNATURE = (
    "c_python_backend_utils.MetricFamily(name: str, description: str, kind: "
    "c_python_backend_utils.MetricKind)"
)


class MetricKind(Enumeration):
    """Kinds of metrics with Triton's numbers."""

    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


class _Series:
    """A family on the server.

    Metrics keep this object when the `MetricFamily` is deleted. Their methods then raise errors.
    """

    def __init__(self, host: Host, kind: MetricKind, family: int) -> None:
        self.host = host
        self.kind = kind
        self.gone = False
        self._family = family
        self._metrics: dict[Any, int] = {}
        self._lock = Lock()

    def metric(self, labels: dict[str, str], buckets: list[float] | None) -> int:
        """Return the server's number of the metric with these labels, which is created if new."""
        key = (frozenset(labels.items()), tuple(buckets or ()))
        with self._lock:
            if key not in self._metrics:
                arguments = {"family": self._family, "labels": labels, "buckets": buckets}
                self._metrics[key] = query(
                    self.host, "Error when creating Metric", "metric", arguments
                )
            return self._metrics[key]

    def close(self) -> None:
        """Remove the family and its metrics from the server."""
        self.gone = True
        for metric in self._metrics.values():
            self.host.notify("metric_drop", {"id": metric})
        self.host.notify("metric_family_drop", {"id": self._family})


class Metric:
    """A metric of a family, which creates it.

    Objects with equal labels are the same metric. Every method raises `TritonModelException` if the
    family was deleted or its kind does not support the operation.
    """

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "_number", "_series")

    def __init__(self, series: _Series, number: int) -> None:
        self._series = series
        self._number = number

    def increment(self, value: float) -> None:
        """Add to a counter (not a negative number) or a gauge.

        Raises `TypeError` for non-numbers.
        """
        failure, number = "Failed to increment metric value", _number("increment", self, value)
        self._check(failure, "Increment", MetricKind.COUNTER, MetricKind.GAUGE)
        if self._series.kind == MetricKind.COUNTER and number < 0:
            rule = (
                "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by "
                "non-negative values."
            )
            raise refusal(self._series.host, failure, rule)
        self._notify("metric_add", number)

    def set(self, value: float) -> None:
        """Set a gauge. Raises `TypeError` for non-numbers."""
        number = _number("set", self, value)
        self._check("Failed to set metric value", "Set", MetricKind.GAUGE)
        self._notify("metric_set", number)

    def observe(self, value: float) -> None:
        """Observe a value in a histogram. Raises `TypeError` for non-numbers."""
        number = _number("observe", self, value)
        self._check("Failed to observe metric value", "Observe", MetricKind.HISTOGRAM)
        self._notify("metric_observe", number)

    def value(self) -> float:
        """Return the value of a counter or gauge."""
        failure = "Failed to get metric value"
        self._check(failure, "Value", MetricKind.COUNTER, MetricKind.GAUGE)
        return float(query(self._series.host, failure, "metric_value", {"metric": self._number}))

    def _check(self, failure: str, operation: str, *kinds: MetricKind) -> None:
        if self._series.gone:
            raise TritonModelException(f"{failure}: {_GONE}")
        kind = self._series.kind
        if kind not in kinds:
            rule = f"TRITONSERVER_METRIC_KIND_{kind.name} does not support {operation}"
            raise refusal(self._series.host, failure, rule)

    def _notify(self, verb: str, value: float) -> None:
        self._series.host.notify(verb, {"metric": self._number, "value": value})


class MetricFamily:
    """Metrics with one name and kind, shared by models that use the same name.

    The server shows them while this object exists.
    """

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "_series")

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        """Create a family.

        Raises `TypeError` for wrong types, `TritonModelException` if it is rejected.
        """
        if text(name) is None or text(description) is None or not isinstance(kind, MetricKind):
            raise argument_type_error("__init__", _SIGNATURE, name, description, kind)
        host = hosts.current()
        arguments = {"name": text(name), "description": text(description), "kind": kind.name}
        family = query(host, "Error when creating MetricFamily", "metric_family", arguments)
        self._series = _Series(host, kind, family)
        # The server removes metrics of a model that ends.
        weakref.finalize(self, self._series.close).atexit = False

    def Metric(  # noqa: N802
        self, labels: dict[str, str] | None = None, buckets: list[float] | None = None
    ) -> Metric:
        """Return the metric with these labels.

        `buckets` are the upper bounds of a histogram, required for it only. Raises
        `TritonModelException` for arguments of wrong types and if the server rejects them.
        """
        if labels is not None and not isinstance(labels, dict):
            raise _uncreated("Labels must be a dictionary.")
        output_names = json.loads(json.dumps(labels)) or {}
        bounds = self._bounds(buckets)
        if not all([isinstance(each, str) for each in output_names.values()]):
            raise refusal(
                self._series.host,
                "Error when creating Metric",
                "attempt to access JSON non-string as string",
            )
        return Metric(self._series, self._series.metric(output_names, bounds))

    def _bounds(self, buckets: Any) -> list[float] | None:
        histogram = self._series.kind == MetricKind.HISTOGRAM
        if buckets is None:
            if histogram:
                raise _uncreated("Missing required buckets.")
            return None
        if not isinstance(buckets, list):
            raise _uncreated("Buckets must be a list.")
        if not histogram:
            raise _uncreated("Unexpected buckets found.")
        bounds = [_as_number(each) for each in buckets]
        if None in bounds:
            raise cast_error()
        return [bound for bound in bounds if bound is not None]


def _uncreated(reason: str) -> TritonModelException:
    return TritonModelException(f"Failed to create metric. {reason}")


def _as_number(value: Any) -> float | None:
    try:
        return None if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        return None


def _number(function: str, metric: Metric, value: Any) -> float:
    number = _as_number(value)
    if number is None:
        raise argument_type_error(
            function, "(self: c_python_backend_utils.Metric, arg0: float) -> None", metric, value
        )
    return number
