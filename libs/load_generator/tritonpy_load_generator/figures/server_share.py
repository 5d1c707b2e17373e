"""The server's statistics of a time span: the difference of two readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

STAGES = ("queue", "compute_input", "compute_infer", "compute_output")
COUNTS = ("success", "fail", *STAGES, "cache_hit", "cache_miss")

Reading = Mapping[str, Any]
"""One entry of `model_stats`: numbers by path, such as `("inference_stats", "queue", "ns")`."""


class StageShare(msgspec.Struct, frozen=True):
    """One stage of all requests in the span: the number of requests and the total time (ns)."""

    count: int = 0
    total_ns: int = 0

    @property
    def mean_us(self) -> float:
        """Microseconds per request."""
        return self.total_ns / self.count / 1e3 if self.count else 0.0


class ServerShare(msgspec.Struct, frozen=True):
    """One model's statistics of a span.

    Inferences count elements of batches; stages have Triton's names; `batches` are executions by
    batch size.
    """

    model: str
    inferences: int
    executions: int
    stages: dict[str, StageShare]
    batches: dict[int, int]

    @property
    def mean_batch(self) -> float:
        """Inferences per execution."""
        return self.inferences / self.executions if self.executions else 0.0


def statistics_between(
    model: str, before: Sequence[Reading], after: Sequence[Reading]
) -> ServerShare:
    """Return the difference of two readings of a model (`model_stats`, one entry per version).

    A counter that decreased, because the model was reloaded, counts from zero.
    """
    return ServerShare(
        model,
        _increase(before, after, "inference_count"),
        _increase(before, after, "execution_count"),
        {name: _stage(before, after, name) for name in COUNTS},
        _batches(before, after),
    )


def combine(shares: Iterable[ServerShare]) -> ServerShare:
    """Add up one model's statistics of several spans; at least one is required."""
    parts = list(shares)
    stages = {
        name: StageShare(
            sum(part.stages[name].count for part in parts),
            sum(part.stages[name].total_ns for part in parts),
        )
        for name in COUNTS
    }
    sizes = sorted({size for part in parts for size in part.batches})
    return ServerShare(
        parts[0].model,
        sum(part.inferences for part in parts),
        sum(part.executions for part in parts),
        stages,
        {size: sum(part.batches.get(size, 0) for part in parts) for size in sizes},
    )


def _stage(before: Sequence[Reading], after: Sequence[Reading], name: str) -> StageShare:
    path = ("inference_stats", name)
    return StageShare(
        _increase(before, after, *path, "count"), _increase(before, after, *path, "ns")
    )


def _batches(before: Sequence[Reading], after: Sequence[Reading]) -> dict[int, int]:
    earlier, later = _executions(before), _executions(after)
    grown = {size: count - earlier.get(size, 0) for size, count in later.items()}
    return {
        size: count if count >= 0 else later[size] for size, count in sorted(grown.items()) if count
    }


def _executions(reading: Sequence[Reading]) -> dict[int, int]:
    found: dict[int, int] = {}
    for version in reading:
        for batch in version.get("batch_stats", ()):
            size = int(batch.get("batch_size", 0))
            found[size] = found.get(size, 0) + int(batch.get("compute_infer", {}).get("count", 0))
    return found


def _increase(before: Sequence[Reading], after: Sequence[Reading], *path: str) -> int:
    first, last = _total(before, path), _total(after, path)
    return last - first if last >= first else last


def _total(reading: Sequence[Reading], path: Sequence[str]) -> int:
    total = 0
    for version in reading:
        value: Any = version
        for key in path:
            value = value.get(key, {}) if isinstance(value, Mapping) else {}
        total += int(value or 0)  # int64 may be a string in JSON
    return total
