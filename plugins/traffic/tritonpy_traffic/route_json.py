"""JSON representation of a route: specification, canary progress and counters."""

from __future__ import annotations

from typing import Any

import msgspec

from tritonpy import now_ns
from tritonpy_traffic.canary import CanaryRun
from tritonpy_traffic.canary_limits import ResponseStats
from tritonpy_traffic.route import Route


def route_to_json(route: Route) -> dict[str, Any]:
    """Return the representation. Its member `route` can be sent back in a PUT."""
    route.evaluate()
    with route.lock:
        return {
            "name": route.name,
            "revision": route.revision,
            "route": msgspec.to_builtins(route.spec),
            "canary": None if route.run is None else _canary(route.run),
            "statistics": {
                "targets": [target_counters.to_json() for target_counters in route.counters.all()],
                "rollbacks": route.counters.rollbacks,
                "promotions": route.counters.promotions,
                "shadow": None if route.shadow_traffic is None else route.shadow_traffic.to_json(),
            },
        }


def _canary(run: CanaryRun) -> dict[str, Any]:
    return {
        "model": run.spec.model,
        "version": run.spec.version,
        "state": run.state.value,
        "reason": run.reason,
        "step": run.step + 1,
        "steps": len(run.spec.steps),
        "share": run.share,
        "step_seconds": round((now_ns() - run.since_ns) / 1e9, 3),
        "answers": _response_stats(run.canary),
        "primary_answers": _response_stats(run.primary),
        "failed_share": round(run.failure_budget.failures / run.failure_budget.responses, 6)
        if run.failure_budget.responses
        else 0.0,
    }


def _response_stats(sample: ResponseStats) -> dict[str, Any]:
    return {
        "count": sample.responses,
        "failures": sample.failures,
        "p95_ms": round(sample.latencies.quantile(0.95) / 1e6, 3)
        if sample.latencies.count
        else None,
    }
