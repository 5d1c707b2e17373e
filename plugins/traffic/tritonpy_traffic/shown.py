"""A route as plain JSON: what it is, how far its canary has come, and what was counted."""

from __future__ import annotations

from typing import Any

import msgspec

from tritonpy import now_ns
from tritonpy_traffic.canary import CanaryRun
from tritonpy_traffic.judgement import Sample
from tritonpy_traffic.route import Route


def shown(route: Route) -> dict[str, Any]:
    """Return all of it; what can be written back is under `route`."""
    route.look()
    with route.lock:
        return {
            "name": route.name,
            "revision": route.revision,
            "route": msgspec.to_builtins(route.spec),
            "canary": None if route.run is None else _canary(route.run),
            "statistics": {
                "targets": [tally.shown() for tally in route.tallies.all()],
                "rollbacks": route.tallies.rollbacks,
                "promotions": route.tallies.promotions,
                "shadow": None if route.shadowing is None else route.shadowing.shown(),
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
        "answers": _answers(run.canary),
        "primary_answers": _answers(run.primary),
        "failed_share": round(run.ledger.failures / run.ledger.answers, 6) if run.ledger.answers else 0.0,
    }


def _answers(sample: Sample) -> dict[str, Any]:
    return {
        "count": sample.answers,
        "failures": sample.failures,
        "p95_ms": round(sample.latencies.quantile(0.95) / 1e6, 3) if sample.latencies.count else None,
    }
