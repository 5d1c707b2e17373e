"""CPU cost of load generators: wrk or h2load, perf_analyzer, and `tritonpy bench`.

Run with `python -m bench.load_generators --perf-analyzer FILE`. They load the same server
alternately. The table has medians of rates and of the load generator's CPU us per request. For
`tritonpy bench`, that is the client process as it reports itself, without the start of two
interpreters. The server is the real Triton with `--triton FILE`, else tritonpy; both serve add/sub
as a Python model without batching.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import clients, models, payloads, processes
from bench.clients import LoadResult
from bench.processes import Running

MODEL = "single"
ANALYZER_WINDOWS = 3  # perf_analyzer needs three windows that agree


@dataclass(frozen=True)
class RunResult:
    """One run: requests/s, median latency (us), and client CPU time per request (us)."""

    rate: float
    p50_us: float
    client_us: float


def main() -> int:
    """Measure all load generators and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--triton", type=Path, help="start script of the real Triton")
    parser.add_argument("--perf-analyzer", type=Path, required=True, help="the real perf_analyzer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="length of one run")
    arguments = parser.parse_args()
    with _running_server(arguments.triton) as server:
        print(
            f"| {server.name} | in flight | load generator | requests/s | p50 us | client "
            "us/request |\n|---|---|---|---|---|---|"
        )
        for protocol in ("HTTP", "gRPC"):
            for in_flight in (1, 8, 32):
                _compare(arguments, server, protocol, in_flight)
    return 0


@contextlib.contextmanager
def _running_server(triton: Path | None) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        models.write_python_backend(repository)
        start = (
            processes.tritonpy(repository)
            if triton is None
            else processes.triton(triton, repository)
        )
        with start as server:
            yield server


def _compare(arguments: argparse.Namespace, server: Running, protocol: str, in_flight: int) -> None:
    payload = payloads.add_sub(MODEL)
    seconds, kind = arguments.seconds, protocol.lower()
    light = clients.wrk if kind == "http" else clients.h2load
    analyzer = (arguments.perf_analyzer, server, MODEL, in_flight, kind, seconds, ("--async",))
    runs: dict[str, Callable[[], RunResult]] = {
        "wrk" if kind == "http" else "h2load": lambda: _measured(
            lambda: light(server, payload, in_flight, seconds), seconds
        ),
        "perf_analyzer": lambda: _measured(
            lambda: clients.perf_analyzer_with(*analyzer), seconds * ANALYZER_WINDOWS
        ),
        "tritonpy bench": lambda: _tritonpy_bench(server, in_flight, kind, seconds),
    }
    if kind == "grpc":
        runs["tritonpy bench, streams"] = lambda: _tritonpy_bench(
            server, in_flight, kind, seconds, "--streaming"
        )
    results: dict[str, list[RunResult]] = {name: [] for name in runs}
    for _ in range(arguments.rounds):
        for name, run in runs.items():
            results[name].append(run())
    for name, runs_of_client in results.items():
        rate, p50, cost = (
            median(figures)
            for figures in zip(
                *((s.rate, s.p50_us, s.client_us) for s in runs_of_client), strict=True
            )
        )
        print(
            f"| {protocol} | {in_flight} | {name} | {rate:,.0f} | {p50:,.0f} | {cost:.0f} |",
            flush=True,
        )


def _measured(run: Callable[[], LoadResult], seconds: int) -> RunResult:
    before = _children_seconds()
    load = run()
    return RunResult(
        load.rate, load.p50_us, (_children_seconds() - before) * 1e6 / max(load.rate * seconds, 1)
    )


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tritonpy_bench(
    server: Running, in_flight: int, protocol: str, seconds: int, *more: str
) -> RunResult:
    port = server.http if protocol == "http" else server.grpc
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            sys.executable, "-m", "tritonpy", "bench", MODEL, "-i", protocol, "-u",
            f"127.0.0.1:{port}",
            f"--concurrency-range={in_flight}", f"--measurement-interval={seconds * 1000}",
            "--max-trials=1",
            f"--json={report}", *more,
        ]  # fmt: skip
        subprocess.run(command, capture_output=True, check=True, timeout=clients.TIMEOUT_S)
        level = json.loads(report.read_text(encoding="utf-8"))["levels"][0]
    return RunResult(level["requests_per_s"], level["latency"]["p50"], level["client_cpu_us"])


if __name__ == "__main__":
    sys.exit(main())
