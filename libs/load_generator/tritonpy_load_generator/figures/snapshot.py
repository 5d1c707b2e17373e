"""Counts of client processes in a time span."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tritonpy_load_generator.figures.histogram import LatencyHistogram, merge


class Snapshot(msgspec.Struct, kw_only=True, frozen=True):
    """Counts between two times of the machine's monotonic clock (ns); durations in ns.

    `latency` counts from the intended start of a request, `service` from when it was sent; both
    include successful requests only. `late` is the client's delay in noticing that a request was
    due. `waited` is the subsequent wait for a free connection or sequence. On streams, `first` is
    the time to the first response, and `between` the time between responses.
    """

    begin_ns: int
    end_ns: int
    latency: LatencyHistogram = LatencyHistogram()
    service: LatencyHistogram = LatencyHistogram()
    late: LatencyHistogram = LatencyHistogram()
    waited: LatencyHistogram = LatencyHistogram()
    first: LatencyHistogram = LatencyHistogram()
    between: LatencyHistogram = LatencyHistogram()
    started: int = 0
    succeeded: int = 0
    responses: int = 0
    errors: dict[str, int] = {}
    cpu_ns: int = 0
    busiest: float = 0.0
    """Share of a CPU core that the busiest client process used."""
    starved: float = 0.0
    """Share of time that a client process was ready but had no CPU; of the worst process."""
    # State at the end of the span:
    in_flight: int = 0
    oldest_ns: int = 0
    """Time since the intended start of the oldest request without a response."""
    unsent: int = 0
    """Requests that are due and wait for a connection or a sequence."""
    warming: bool = False
    finished: bool = False
    """Whether all requests of a fixed count have finished."""

    @property
    def seconds(self) -> float:
        """The length of the span."""
        return (self.end_ns - self.begin_ns) / 1e9

    @property
    def failed(self) -> int:
        """Requests that ended with an error or without a response."""
        return sum(self.errors.values())


_HISTOGRAMS = ("latency", "service", "late", "waited", "first", "between")
_SUMS = ("started", "succeeded", "responses", "cpu_ns")


def join_parallel(parts: Sequence[Snapshot]) -> Snapshot:
    """Join the counts of several processes in the same span."""
    return _join(
        parts,
        busiest=max(part.busiest for part in parts),
        starved=max(part.starved for part in parts),
        in_flight=sum(part.in_flight for part in parts),
        oldest_ns=max(part.oldest_ns for part in parts),
        unsent=sum(part.unsent for part in parts),
        warming=any(part.warming for part in parts),
        finished=all(part.finished for part in parts),
    )


def join_consecutive(parts: Sequence[Snapshot]) -> Snapshot:
    """Join the counts of consecutive spans."""
    last = parts[-1]
    seconds = sum(part.seconds for part in parts) or 1.0
    return _join(
        parts,
        busiest=sum(part.busiest * part.seconds for part in parts) / seconds,
        starved=sum(part.starved * part.seconds for part in parts) / seconds,
        in_flight=last.in_flight,
        oldest_ns=last.oldest_ns,
        unsent=last.unsent,
        warming=last.warming,
        finished=last.finished,
    )


def _join(parts: Sequence[Snapshot], **rest: float | bool) -> Snapshot:
    fields: dict[str, Any] = dict(rest)
    for name in _HISTOGRAMS:
        fields[name] = merge(getattr(part, name) for part in parts)
    for name in _SUMS:
        fields[name] = sum(getattr(part, name) for part in parts)
    fields["errors"] = _sum_counts(part.errors for part in parts)
    fields["begin_ns"] = min(part.begin_ns for part in parts)
    fields["end_ns"] = max(part.end_ns for part in parts)
    return Snapshot(**fields)


def _sum_counts(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    whole: Counter[str] = Counter()
    for part in counts:
        whole.update(part)
    return dict(whole)
