"""The registry of all custom metrics of a server, by name and labels."""

from __future__ import annotations

import enum
import math
import re
import threading
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import ClassVar

import msgspec

from tritonpy_types.errors import AlreadyExists, InvalidArgument, Unsupported

Labels = tuple[tuple[str, str], ...]


# Prometheus' data model; it reserves names that start with two underscores.
_METRIC_NAME = re.compile(r"(?!__)[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")

SERVER_METRICS = frozenset(
    f"nv_{name}"
    for name in (
        "inference_request_success", "inference_request_failure", "inference_count",
        "inference_exec_count",
        "inference_pending_request_count", "inference_first_response_histogram_ms",
        "model_load_duration_secs",
        "model_memory_bytes",
        *(
            f"inference_{part}_{form}_us"
            for part in ("request", "queue", "compute_input", "compute_infer", "compute_output")
            for form in ("duration", "summary")
        ),
        *(f"cache_{name}_{form}_per_model" for name in ("hit", "miss")
        for form in ("duration", "summary")),
        "cache_num_hits_per_model", "cache_num_misses_per_model",
        *(f"cache_{name}" for name in ("util", "lookup_duration", "insertion_duration")),
        *(f"cache_num_{name}" for name in ("entries", "hits", "misses", "lookups", "evictions")),
        "cpu_utilization", "cpu_memory_total_bytes", "cpu_memory_used_bytes",
        "gpu_utilization", "gpu_memory_total_bytes", "gpu_memory_used_bytes", "gpu_power_usage",
        "gpu_power_limit",
        "energy_consumption", "pinned_memory_pool_total_bytes", "pinned_memory_pool_used_bytes",
        "pinned_memory_pool_fallback_count",
        "cuda_memory_pool_total_bytes", "cuda_memory_pool_used_bytes",
        "memory_budget_bytes", "memory_budget_used_bytes", "memory_budget_waiting_loads",
        *(f"lazy_{name}"
        for name in ("hits", "misses", "refusals", "loads", "load_failures", "evictions",
        "waiting_requests")),
        *(f"request_memory_{name}" for name in ("bytes", "limit_bytes", "refusals")),
    )
)  # fmt: skip
"""The names of the server's own metrics, which models may not use."""


class MetricKind(enum.Enum):
    """The kinds of metrics; the values are Prometheus' type names."""

    COUNTER = "counter"  # can only increase
    GAUGE = "gauge"
    HISTOGRAM = "histogram"

    @property
    def triton_name(self) -> str:
        """The name of Triton's constant, as in its error texts."""
        return f"TRITONSERVER_METRIC_KIND_{self.name}"


class HistogramSnapshot(msgspec.Struct, frozen=True):
    """The state of a histogram: `counts[i]` observations were at most `bounds[i]`.

    `count` is the number of all observations, `sum` is their sum.
    """

    bounds: list[float]
    counts: list[int]
    count: int
    sum: float


class MetricSnapshot(msgspec.Struct, frozen=True):
    """One metric; `labels` are sorted by name.

    A histogram has its state in `histogram` and no `value`.
    """

    labels: dict[str, str]
    value: float = 0.0
    histogram: HistogramSnapshot | None = None


class FamilySnapshot(msgspec.Struct, frozen=True):
    """The metrics of one name, in the order of their creation; never empty."""

    name: str
    description: str
    kind: MetricKind
    metrics: list[MetricSnapshot]


class Cell(ABC):
    """The value of one metric; operations that its kind does not support raise Unsupported."""

    kind: ClassVar[MetricKind]

    def __init__(self) -> None:
        self.owners = 0

    def increment(self, value: float) -> None:
        """Add `value`."""
        raise self._unsupported("Increment")

    def set(self, value: float) -> None:
        """Replace the value."""
        raise self._unsupported("Set")

    def observe(self, value: float) -> None:
        """Count one observation."""
        raise self._unsupported("Observe")

    def value(self) -> float:
        """Return the value."""
        raise self._unsupported("Value")

    @abstractmethod
    def snapshot(self, labels: dict[str, str]) -> MetricSnapshot:
        """Return the current state as plain values."""

    def _unsupported(self, operation: str) -> Unsupported:
        return Unsupported(f"{self.kind.triton_name} does not support {operation}")


class _Number(Cell):
    """A metric that is one number."""

    def __init__(self) -> None:
        super().__init__()
        self._value = 0.0

    def increment(self, value: float) -> None:
        self._value += value

    def value(self) -> float:
        return self._value

    def snapshot(self, labels: dict[str, str]) -> MetricSnapshot:
        return MetricSnapshot(labels, self._value)


class Gauge(_Number):
    """A number that can increase and decrease."""

    kind = MetricKind.GAUGE

    def set(self, value: float) -> None:
        self._value = value


class Counter(_Number):
    """A number that can only increase."""

    kind = MetricKind.COUNTER

    def increment(self, value: float) -> None:
        if value < 0:
            raise InvalidArgument(
                f"{self.kind.triton_name} can only be incremented monotonically by non-negative "
                "values."
            )
        super().increment(value)


class Histogram(Cell):
    """Counts of observations by size.

    Raises InvalidArgument if `bounds` are not strictly ascending.
    """

    kind = MetricKind.HISTOGRAM

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__()
        self._bounds = [float(bound) for bound in bounds]
        if any(map(math.isnan, self._bounds)) or any(
            low >= high for low, high in pairwise(self._bounds)
        ):
            raise InvalidArgument("Bucket Boundaries must be strictly sorted")
        if self._bounds and self._bounds[-1] == math.inf:
            self._bounds.pop()  # every histogram ends with that bucket
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def snapshot(self, labels: dict[str, str]) -> MetricSnapshot:
        *counts, count = accumulate(self._counts)
        return MetricSnapshot(
            labels, histogram=HistogramSnapshot(list(self._bounds), counts, count, self._sum)
        )


def make_cell(kind: MetricKind, buckets: Sequence[float] | None) -> Cell:
    """Return a new metric value. Raises InvalidArgument if `buckets` do not match the kind."""
    if kind is MetricKind.HISTOGRAM:
        if buckets is None:
            raise InvalidArgument("Bucket boundaries not found in Metric args.")
        return Histogram(buckets)
    if buckets is not None:
        raise InvalidArgument(f"Unexpected args found in {kind.value} Metric constructor.")
    return Counter() if kind is MetricKind.COUNTER else Gauge()


def check_name(name: str, reserved: Collection[str] = SERVER_METRICS) -> None:
    """Raise InvalidArgument for an invalid name, AlreadyExists for a metric of the server."""
    if not _METRIC_NAME.fullmatch(name):
        raise InvalidArgument("Invalid metric name")
    if name in reserved:
        raise AlreadyExists(
            f"Family name already exists: '{name}' is a metric of the server itself"
        )


def sorted_labels(labels: Mapping[str, str], kind: MetricKind) -> tuple[tuple[str, str], ...]:
    """Return the labels sorted by name. Raises InvalidArgument for an invalid name or value."""
    for name, value in labels.items():
        if not isinstance(value, str):
            raise InvalidArgument(
                f"Parameter [{name}] must have a type of TRITONSERVER_PARAMETER_STRING to be "
                "added as a label."
            )
        if not _LABEL_NAME.fullmatch(name) or (name == "le" and kind is MetricKind.HISTOGRAM):
            raise InvalidArgument("Invalid label name")
    return tuple(sorted(labels.items()))


class SharedFamily:
    """The metrics of one name; it is removed with its last owner."""

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        self.name = name
        self.description = description
        self.kind = kind
        self.owners = 0
        self.cells: dict[Labels, Cell] = {}

    def snapshot(self) -> FamilySnapshot:
        """Return the metrics as plain values."""
        metrics = [cell.snapshot(dict(labels)) for labels, cell in self.cells.items()]
        return FamilySnapshot(self.name, self.description, self.kind, metrics)


class CustomMetrics:
    """The registry of a server, which models use through `ModelMetrics`.

    `lock` protects its contents. Families with a `reserved` name are the server's own.
    """

    def __init__(self, reserved: Collection[str] = SERVER_METRICS) -> None:
        self.lock = threading.Lock()
        self._reserved = reserved
        self._families: dict[str, SharedFamily] = {}
        self._sources: list[Callable[[], Sequence[FamilySnapshot]]] = []

    def add_source(self, source: Callable[[], Sequence[FamilySnapshot]]) -> None:
        """Add a function that returns further families.

        Called at each snapshot, without the lock.
        """
        self._sources.append(source)

    def own(self, name: str, description: str, kind: MetricKind) -> SharedFamily:
        """Return the family `name` with one more owner; the caller holds the lock.

        The description of the first owner stays. Raises InvalidArgument for a bad name and for a
        family of another kind, AlreadyExists for one of the server's own metrics.
        """
        family = self._families.get(name)
        if family is None:
            check_name(name, self._reserved)
            family = self._families[name] = SharedFamily(name, description, kind)
        elif family.kind is not kind:
            raise InvalidArgument("Family name already exists with different type")
        family.owners += 1
        return family

    def disown(self, family: SharedFamily) -> None:
        """Remove one owner; the caller holds the lock."""
        family.owners -= 1
        if family.owners == 0:
            del self._families[family.name]

    def snapshot(self) -> list[FamilySnapshot]:
        """Return every family that has a metric, in the order of their creation."""
        with self.lock:
            found = [family.snapshot() for family in self._families.values() if family.cells]
        for source in self._sources:
            found += source()
        return found
