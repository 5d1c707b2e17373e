"""What client processes counted in a span of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tritonpy_bench.figures.histogram import Histogram, merged


class Snapshot(msgspec.Struct, kw_only=True, frozen=True):
    """Counts between two moments (ns of the machine's monotonic clock); durations in ns.

    `latency` is counted from the intended start, `service` from the moment the request was handed to the connection; both of requests that
    succeeded. `late` is how long after the intended start the client woke up for it, `waited` how long it then found no free connection or
    sequence. `first` and `between` are times to the first answer and between answers of requests on streams.
    """

    begin_ns: int
    end_ns: int
    latency: Histogram = Histogram()
    service: Histogram = Histogram()
    late: Histogram = Histogram()
    waited: Histogram = Histogram()
    first: Histogram = Histogram()
    between: Histogram = Histogram()
    started: int = 0
    succeeded: int = 0
    responses: int = 0
    errors: dict[str, int] = {}
    cpu_ns: int = 0
    busiest: float = 0.0
    """Share of a processor core that the busiest client process took."""
    starved: float = 0.0
    """Share of the time that a client process was ready to run and had no processor: the one that waited most."""
    # As it was at the end:
    in_flight: int = 0
    oldest_ns: int = 0
    """How long ago the oldest unanswered request was to start."""
    unsent: int = 0
    """Requests that were due and waited for a connection or a sequence."""
    warming: bool = False
    finished: bool = False
    """All requests that were asked for have been made and answered."""

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.end_ns - self.begin_ns) / 1e9

    @property
    def failed(self) -> int:
        """Requests that were answered with an error, or not at all."""
        return sum(self.errors.values())


_HISTOGRAMS = ("latency", "service", "late", "waited", "first", "between")
_SUMS = ("started", "succeeded", "responses", "cpu_ns")


def side_by_side(parts: Sequence[Snapshot]) -> Snapshot:
    """Join what several processes counted in the same span."""
    return _joined(
        parts,
        busiest=max(part.busiest for part in parts),
        starved=max(part.starved for part in parts),
        in_flight=sum(part.in_flight for part in parts),
        oldest_ns=max(part.oldest_ns for part in parts),
        unsent=sum(part.unsent for part in parts),
        warming=any(part.warming for part in parts),
        finished=all(part.finished for part in parts),
    )


def one_after_another(parts: Sequence[Snapshot]) -> Snapshot:
    """Join spans that follow each other."""
    last = parts[-1]
    seconds = sum(part.seconds for part in parts) or 1.0
    return _joined(
        parts,
        busiest=sum(part.busiest * part.seconds for part in parts) / seconds,
        starved=sum(part.starved * part.seconds for part in parts) / seconds,
        in_flight=last.in_flight,
        oldest_ns=last.oldest_ns,
        unsent=last.unsent,
        warming=last.warming,
        finished=last.finished,
    )


def _joined(parts: Sequence[Snapshot], **rest: float | bool) -> Snapshot:
    fields: dict[str, Any] = dict(rest)
    for name in _HISTOGRAMS:
        fields[name] = merged(getattr(part, name) for part in parts)
    for name in _SUMS:
        fields[name] = sum(getattr(part, name) for part in parts)
    fields["errors"] = _added(part.errors for part in parts)
    fields["begin_ns"] = min(part.begin_ns for part in parts)
    fields["end_ns"] = max(part.end_ns for part in parts)
    return Snapshot(**fields)


def _added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    whole: Counter[str] = Counter()
    for part in counts:
        whole.update(part)
    return dict(whole)
