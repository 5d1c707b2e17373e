"""Compares tritonpy with its bare echo and with the real Triton, side by side: `python -m bench.compare`.

Each row interleaves the two servers, both up all the time, for at least seven pairs of short runs; the verdict is that of
`bench.verdict`. `--triton` names the real server's start script and `--perf-analyzer` its load generator (tests/conformance/oracle.sh DIR makes
both); without them those rows are left out and said so.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import clients, models, payloads, processes
from bench.clients import Load
from bench.processes import Running
from bench.program import arguments_of, run
from bench.rows import Case


def main() -> int:
    """Run the chosen rows and print the table; 1 when a row fell short."""
    arguments = arguments_of(__doc__)
    cases = [case for case in _cases(arguments.perf_analyzer) if arguments.only in case.name]
    with contextlib.ExitStack() as stack:
        servers = _servers(stack, cases, arguments.triton)
        return run(arguments, cases, servers["tritonpy"], servers)


def _cases(perf_analyzer: Path | None) -> list[Case]:
    small, large = payloads.add_sub(), payloads.identity()

    def http(in_flight: int, payload: payloads.Payload = small) -> Callable[[Running, int], Load]:
        return lambda server, seconds: clients.wrk(server, payload, in_flight, seconds)

    def grpc(in_flight: int) -> Callable[[Running, int], Load]:
        return lambda server, seconds: clients.h2load(server, small, in_flight, seconds)

    cases = [
        Case("HTTP, 8 in flight, wrk", "echo http", http(8), 0.55),
        Case("HTTP, 32 in flight, wrk", "echo http", http(32), 0.55),
        Case("HTTP, 8 in flight, wrk", "Triton", http(8), 1.2),
        Case("HTTP, 32 in flight, wrk", "Triton", http(32), 1.2),
        Case("HTTP, 1 in flight, wrk p50", "Triton", http(1), 1.15, latency=True),
        Case("gRPC, 8 in flight, h2load", "echo grpc", grpc(8), 0.7),
        Case("gRPC, 32 in flight, h2load", "echo grpc", grpc(32), 0.7),
        Case("HTTP, 16 MiB identity, wrk", "echo http large", http(2, large), 0.6),
    ]
    if perf_analyzer is not None:
        cases += [
            _perf_case(perf_analyzer, protocol, in_flight) for protocol in ("http", "grpc") for in_flight in (1, 8, 32)
        ]
    return cases


def _perf_case(binary: Path, protocol: str, in_flight: int) -> Case:
    def load(server: Running, _seconds: int) -> Load:
        return clients.perf_analyzer(binary, server, payloads.add_sub(), in_flight, protocol)

    name = f"{protocol.upper() if protocol == 'http' else 'gRPC'}, {in_flight} in flight, perf_analyzer"
    if in_flight == 1:
        return Case(f"{name} p50", "Triton", load, 1.15, latency=True)
    # perf_analyzer takes most of a core for itself: these rows show what a user sees, the goal is the light client's.
    return Case(name, "Triton", load, 1.2 if protocol == "http" else 1.0)


def _servers(stack: contextlib.ExitStack, cases: list[Case], triton: Path | None) -> dict[str, Running]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    models.write_onnx(folder / "onnx")
    models.write_python(folder / "python")
    starts: dict[str, Callable[[], contextlib.AbstractContextManager[Running]]] = {
        "tritonpy": lambda: processes.tritonpy(folder / "onnx"),
        "echo http": lambda: processes.echo("http", "add_sub"),
        "echo http large": lambda: processes.echo("http", "identity"),
        "echo grpc": lambda: processes.echo("grpc", "add_sub"),
    }
    if triton is not None:
        starts["Triton"] = lambda: processes.triton(triton, folder / "python")
    wanted = {"tritonpy", *(case.other for case in cases)}
    return {name: stack.enter_context(start()) for name, start in starts.items() if name in wanted}


if __name__ == "__main__":
    sys.exit(main())
