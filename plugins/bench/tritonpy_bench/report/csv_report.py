"""CSV report: perf_analyzer's columns first, then additional ones.

Durations are in microseconds.
"""

from __future__ import annotations

import csv
from pathlib import Path

from tritonpy_bench.report.result import LevelResult, Result

_FIRST = {
    "concurrency": "Concurrency",
    "request_rate": "Request Rate",
    "request_intervals": "Request Intervals",
}


def write_csv(path: Path, result: Result) -> None:
    """Write one row per level. Raises OSError."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = [_row(level) for level in result.levels]
        writer = csv.DictWriter(
            file, list(rows[0]) if rows else ["Concurrency", "Inferences/Second"]
        )
        writer.writeheader()
        writer.writerows(rows)


def _row(level: LevelResult) -> dict[str, str | float | int]:
    latency = level.latency
    return {
        _FIRST[level.mode]: f"{level.level:g}",
        "Inferences/Second": round(level.inferences_per_s, 3),
        **_server(level),
        "p50 latency": round(latency.p50),
        "p90 latency": round(latency.p90),
        "p95 latency": round(latency.p95),
        "p99 latency": round(latency.p99),
        "Avg latency": round(latency.mean),
        "p99.9 latency": round(latency.p999),
        "Max latency": round(latency.most),
        "Requests/Second": round(level.requests_per_s, 3),
        "Responses/Second": round(level.responses_per_s, 3),
        "Request Count": level.requests,
        "Failed Request Count": level.failed,
        "Avg service time": round(level.service.mean),
        "p99 service time": round(level.service.p99),
        "p99 generator lateness": round(level.late.p99),
        "p99 wait for a connection": round(level.waited.p99),
        "Avg time to first response": round(level.first.mean),
        "Avg time between responses": round(level.between.mean),
        "Client CPU per request": round(level.client_cpu_us, 1),
        "Client busiest core": round(level.client_busiest, 3),
        "Stable": int(level.stable),
    }


def _server(level: LevelResult) -> dict[str, int]:
    """Return the columns of the model's server statistics; 0 if there are none."""
    if not level.server:
        return dict.fromkeys(_SERVER_COLUMNS, 0)
    stages = level.server[0].stages
    inside = round(stages["success"].mean_us)
    values = (
        max(round(level.service.mean) - inside, 0),
        *(
            round(stages[name].mean_us)
            for name in ("queue", "compute_input", "compute_infer", "compute_output")
        ),
        round(stages["cache_hit"].mean_us),
        round(stages["cache_miss"].mean_us),
    )
    return dict(zip(_SERVER_COLUMNS, values, strict=True))


_SERVER_COLUMNS = (
    "Network+Server Send/Recv",
    "Server Queue",
    "Server Compute Input",
    "Server Compute Infer",
    "Server Compute Output",
    "Server Cache Hit",
    "Server Cache Miss",
)
