"""The rows of the comparison with Triton: each names its transport and its goal."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.comparison_rows import ON_GRPCIO, TRANSPORTS, comparison_cases
from bench.rows import P50, P99, RATE


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_row_names_its_transport_and_runs_on_it(transport: str) -> None:
    rows = list(comparison_cases(transport, Path("perf_analyzer")))
    assert all(f" on {transport}, " in case.name for case in rows)
    assert len({case.name for case in rows}) == len(rows)
    own = [case for case in rows if case.other == "Triton" and "echo" not in case.subject]
    assert {case.subject for case in own} == {ON_GRPCIO if transport == "grpcio" else "tritonpy"}


def test_exactly_the_required_rows_are_judged() -> None:
    goals = {
        case.name: (case.figure, case.goal, case.aim)
        for each in TRANSPORTS
        for case in comparison_cases(each, None)
    }
    assert goals["HTTP on uvicorn, dynamic batching, 64 in flight, wrk"] == (RATE, 1.3, 1.5)
    assert goals["HTTP on uvicorn, no batching, 8 in flight, wrk"] == (RATE, 1.1, 1.5)
    assert goals["gRPC on h2, dynamic batching, 32 in flight, h2load"] == (RATE, 1.2, 1.5)
    assert goals["gRPC on grpcio, no batching, 64 in flight, h2load"] == (RATE, 1.0, 1.3)
    assert goals["HTTP on uvicorn, no batching, 1 in flight, wrk p50"] == (P50, 1.1, 1.0)
    assert goals["gRPC on h2, no batching, 1 in flight, h2load p50"] == (P50, 1.6, 1.0)
    assert goals["gRPC on h2, the bare echo, 1 in flight, h2load p50"] == (P50, None, None)
    assert goals["HTTP on uvicorn, no batching, 32 in flight, wrk p99"] == (P99, 1.0, 0.5)
    name = "gRPC on grpcio, ONNX add/sub in process, dynamic batching, 32 in flight, h2load"
    assert goals[name] == (RATE, 0.7, None)
    assert goals["gRPC on h2, 16 MiB in and out through shared memory, 2 in flight, h2load"] == (
        RATE,
        1.0,
        1.2,
    )
