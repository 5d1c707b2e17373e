"""Prometheus metrics of the routes, collected on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tritonpy.metrics import FamilySnapshot, HistogramSnapshot, MetricKind, MetricSnapshot
from tritonpy_traffic.counters import TargetCounters
from tritonpy_traffic.latencies import Latencies
from tritonpy_traffic.route import Route
from tritonpy_traffic.shadow_traffic import OUTCOMES

_PREFIX = "tritonpy_route_"


def _step(route: Route) -> int:
    run = route.run
    return run.step + 1 if run is not None and run.is_live else 0


def _share(route: Route) -> float:
    return 0.0 if route.run is None else route.run.share


_PER_TARGET: tuple[tuple[str, str, Callable[[TargetCounters], int]], ...] = (
    (
        "requests",
        "Number of responses by route and target",
        lambda target_counters: target_counters.requests,
    ),
    (
        "failures",
        "Number of error responses by route and target",
        lambda target_counters: target_counters.failures,
    ),
    (
        "skips",
        "Number of requests that another target received instead, by route and target",
        lambda target_counters: target_counters.skipped,
    ),
)
_PER_ROUTE: tuple[tuple[str, str, MetricKind, Callable[[Route], float]], ...] = (
    ("canary_step", (
        "Step of the canary, counted from 1; "
        "0 without a live canary"
    ), MetricKind.GAUGE, _step),
    ("canary_share", "Share of the requests that the canary receives", MetricKind.GAUGE, _share),
    ("canary_rollbacks", (
        "Number of canaries that were "
        "rolled back"
    ), MetricKind.COUNTER, lambda route: route.counters.rollbacks),
    ("canary_promotions", (
        "Number of canaries that "
        "were promoted"
    ), MetricKind.COUNTER, lambda route: route.counters.promotions),
)  # fmt: skip


def snapshot(routes: Mapping[str, Route]) -> Sequence[FamilySnapshot]:
    """Return the metrics of `routes`, none without routes."""
    if not routes:
        return []
    counters: list[tuple[dict[str, str], TargetCounters]] = []
    for route in routes.values():
        with route.lock:
            counters += [
                (_labels(route, target_counters), target_counters)
                for target_counters in route.counters.all()
            ]
    return [
        *_target_families(counters),
        *(
            _family(name, text, kind,
            (MetricSnapshot({"route": each.name}, float(read(each))) for each in routes.values()))
            for name, text, kind, read in _PER_ROUTE
        ),
        _family("shadow_copies", (
            "Number of shadow copies "
            "by outcome"
        ), MetricKind.COUNTER, _shadow_thread(routes)),
        _latencies("shadow_latency_seconds", "Latency of shadow copies", _shadow_latencies(routes)),
    ]  # fmt: skip


def _target_families(
    counters: Sequence[tuple[dict[str, str], TargetCounters]],
) -> Iterable[FamilySnapshot]:
    for name, text, read in _PER_TARGET:
        metrics = (
            MetricSnapshot(labels, float(read(target_counters)))
            for labels, target_counters in counters
        )
        yield _family(name, text, MetricKind.COUNTER, metrics)
    text = "Latency of successful responses by route and target"
    yield _latencies(
        "latency_seconds",
        text,
        [(labels, target_counters.latencies) for labels, target_counters in counters],
    )


def _labels(route: Route, target_counters: TargetCounters) -> dict[str, str]:
    version = "" if target_counters.target.version is None else str(target_counters.target.version)
    return {"route": route.name, "model": target_counters.target.model, "version": version}


def _shadow_thread(routes: Mapping[str, Route]) -> Iterable[MetricSnapshot]:
    for route in routes.values():
        if route.shadow_traffic is not None:
            outcomes = route.shadow_traffic.outcomes
            for outcome in OUTCOMES:
                yield MetricSnapshot(
                    {"route": route.name, "outcome": outcome}, float(outcomes[outcome])
                )


def _shadow_latencies(routes: Mapping[str, Route]) -> list[tuple[dict[str, str], Latencies]]:
    return [
        ({"route": route.name}, route.shadow_traffic.latencies)
        for route in routes.values()
        if route.shadow_traffic is not None
    ]


def _latencies(
    name: str, text: str, found: Iterable[tuple[dict[str, str], Latencies]]
) -> FamilySnapshot:
    metrics = []
    for labels, times in found:
        bounds, counts = times.exported()
        metrics.append(
            MetricSnapshot(
                labels, histogram=HistogramSnapshot(bounds, counts, times.count, times.sum_ns / 1e9)
            )
        )
    return _family(name, text, MetricKind.HISTOGRAM, metrics)


def _family(
    name: str, text: str, kind: MetricKind, metrics: Iterable[MetricSnapshot]
) -> FamilySnapshot:
    return FamilySnapshot(_PREFIX + name, text, kind, list(metrics))
