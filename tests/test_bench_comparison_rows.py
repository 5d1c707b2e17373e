"""The rows of the comparison with Triton: each names its transport and its goal."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import baseline, native
from bench.comparison_rows import ON_GRPCIO, TRANSPORTS, comparison_cases
from bench.rows import P50, P99, RATE, Row
from bench.verdict import judge


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
    assert goals["HTTP on uvicorn, dynamic batching, 64 in flight, wrk, varied requests"] == (
        RATE,
        1.3,
        1.5,
    )
    assert goals["HTTP on uvicorn, no batching, 8 in flight, wrk, varied requests"] == (
        RATE,
        1.1,
        1.5,
    )
    varied = "bench.varied_grpc, varied requests"
    assert goals[f"gRPC on h2, dynamic batching, 32 in flight, {varied}"] == (RATE, 1.2, 1.5)
    assert goals[f"gRPC on grpcio, no batching, 64 in flight, {varied}"] == (RATE, 1.0, 1.3)
    assert goals["HTTP on uvicorn, no batching, 1 in flight, wrk, varied requests p50"] == (
        P50,
        1.1,
        1.0,
    )
    assert goals[f"gRPC on h2, no batching, 1 in flight, {varied} p50"] == (P50, 1.6, 1.0)
    assert goals["gRPC on h2, the bare echo, 1 in flight, h2load p50"] == (P50, None, None)
    assert goals["HTTP on uvicorn, no batching, 32 in flight, wrk, varied requests p99"] == (
        P99,
        1.0,
        0.5,
    )
    assert goals["HTTP on uvicorn, no batching, 8 in flight, wrk"] == (RATE, None, None)
    assert goals["gRPC on h2, no batching, 8 in flight, h2load"] == (RATE, None, None)
    name = f"gRPC on grpcio, ONNX add/sub in process, dynamic batching, 32 in flight, {varied}"
    assert goals[name] == (RATE, 0.7, None)
    assert goals["gRPC on h2, 16 MiB in and out through shared memory, 2 in flight, h2load"] == (
        RATE,
        1.0,
        1.2,
    )


def test_ratios_to_the_baseline_estimate_those_to_native_triton(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(baseline, "_git", lambda *_arguments: "8d6e105")
    cases = {case.name: case for case in baseline.cases()}
    name = "ONNX add/sub, HTTP, varied requests, no batching, 8 in flight"
    row = Row(cases[name], [], [], judge([2.0] * 5, [1.0] * 5, None, lower_is_better=False))
    assert f"| {name} | 2.00 | 0.50 | 1.00 |" in baseline.estimate([row], "v1")


def test_another_baseline_has_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "_git", lambda *_arguments: "1234567")
    assert "no estimate" in baseline.estimate([], "v2")


def test_rows_against_native_triton_are_judged_with_varied_requests() -> None:
    rows = {case.name: case for case in native.cases()}
    assert len(rows) == 2 * 4 * 5
    judged = {name: (case.goal, case.aim) for name, case in rows.items() if case.goal is not None}
    varied = "ONNX add/sub, HTTP, varied requests"
    assert judged[f"{varied}, no batching, 32 in flight"] == (0.9, 1.2)
    assert judged[f"{varied}, no batching, 32 in flight p99"] == (1.0, 0.5)
    assert judged[f"{varied}, dynamic batching, 64 in flight"] == (1.0, 1.3)
    assert judged["ONNX add/sub, gRPC, varied requests, no batching, 1 in flight p50"] == (1.1, 1.0)
    assert f"{varied}, dynamic batching, 8 in flight" not in judged
    assert not any("HTTP, no batching" in name or "gRPC, no" in name for name in judged)


def test_a_missing_native_triton_is_named(tmp_path: Path) -> None:
    assert native.missing(None) == "--native-triton is not given"
    assert native.missing(tmp_path) == f"{tmp_path} has no bin/tritonserver"
    for path in ("bin/tritonserver", "backends/onnxruntime"):
        (tmp_path / path).mkdir(parents=True)
    assert native.missing(tmp_path) == ""
