"""The routes' numbers for Prometheus, made when somebody asks: a request only counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tritonpy import FamilySnapshot, HistogramSnapshot, MetricKind, MetricSnapshot
from tritonpy_traffic.latencies import Latencies
from tritonpy_traffic.route import Route
from tritonpy_traffic.shadowing import OUTCOMES
from tritonpy_traffic.tally import Tally

_PREFIX = "tritonpy_route_"


def _step(route: Route) -> int:
    run = route.run
    return run.step + 1 if run is not None and run.live else 0


def _share(route: Route) -> float:
    return 0.0 if route.run is None else route.run.share


_PER_TARGET: tuple[tuple[str, str, Callable[[Tally], int]], ...] = (
    ("requests", "Number of answers by route and target", lambda tally: tally.requests),
    ("failures", "Number of answers that were errors by route and target", lambda tally: tally.failures),
    ("skips", "Number of requests that another target got, by route and target", lambda tally: tally.skipped),
)
_PER_ROUTE: tuple[tuple[str, str, MetricKind, Callable[[Route], float]], ...] = (
    ("canary_step", "Step of the canary, counted from 1, 0 where none is on its way", MetricKind.GAUGE, _step),
    ("canary_share", "Share of the requests that the canary gets", MetricKind.GAUGE, _share),
    ("canary_rollbacks", "Number of canaries that were rolled back", MetricKind.COUNTER, lambda route: route.tallies.rollbacks),
    ("canary_promotions", "Number of canaries that were promoted", MetricKind.COUNTER, lambda route: route.tallies.promotions),
)  # fmt: skip


def snapshot(routes: Mapping[str, Route]) -> Sequence[FamilySnapshot]:
    """Return the metrics of `routes`, none without routes."""
    if not routes:
        return []
    tallies: list[tuple[dict[str, str], Tally]] = []
    for route in routes.values():
        with route.lock:
            tallies += [(_labels(route, tally), tally) for tally in route.tallies.all()]
    return [
        *_target_families(tallies),
        *(
            _family(name, text, kind, (MetricSnapshot({"route": each.name}, float(read(each))) for each in routes.values()))
            for name, text, kind, read in _PER_ROUTE
        ),
        _family("shadow_copies", "Number of shadow copies by what became of them", MetricKind.COUNTER, _copies(routes)),
        _latencies("shadow_latency_seconds", "Latency of shadow copies", _shadow_latencies(routes)),
    ]  # fmt: skip


def _target_families(tallies: Sequence[tuple[dict[str, str], Tally]]) -> Iterable[FamilySnapshot]:
    for name, text, read in _PER_TARGET:
        metrics = (MetricSnapshot(labels, float(read(tally))) for labels, tally in tallies)
        yield _family(name, text, MetricKind.COUNTER, metrics)
    text = "Latency of answers without error by route and target"
    yield _latencies("latency_seconds", text, [(labels, tally.latencies) for labels, tally in tallies])


def _labels(route: Route, tally: Tally) -> dict[str, str]:
    version = "" if tally.target.version is None else str(tally.target.version)
    return {"route": route.name, "model": tally.target.model, "version": version}


def _copies(routes: Mapping[str, Route]) -> Iterable[MetricSnapshot]:
    for route in routes.values():
        if route.shadowing is not None:
            outcomes = route.shadowing.outcomes
            for outcome in OUTCOMES:
                yield MetricSnapshot({"route": route.name, "outcome": outcome}, float(outcomes[outcome]))


def _shadow_latencies(routes: Mapping[str, Route]) -> list[tuple[dict[str, str], Latencies]]:
    return [
        ({"route": route.name}, route.shadowing.latencies) for route in routes.values() if route.shadowing is not None
    ]


def _latencies(name: str, text: str, found: Iterable[tuple[dict[str, str], Latencies]]) -> FamilySnapshot:
    metrics = []
    for labels, times in found:
        bounds, counts = times.exported()
        metrics.append(
            MetricSnapshot(labels, histogram=HistogramSnapshot(bounds, counts, times.count, times.sum_ns / 1e9))
        )
    return _family(name, text, MetricKind.HISTOGRAM, metrics)


def _family(name: str, text: str, kind: MetricKind, metrics: Iterable[MetricSnapshot]) -> FamilySnapshot:
    return FamilySnapshot(_PREFIX + name, text, kind, list(metrics))
