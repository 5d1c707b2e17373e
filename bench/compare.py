"""Comparison of tritonpy with the real Triton and the bare echo server of each transport.

Run with `python -m bench.compare --triton FILE`. Each row alternates between its two running
servers for at least five pairs of short runs; `bench.verdict` defines the verdict. `--triton` is
the real server's start script and `--perf-analyzer` its load generator;
`tests/conformance/oracle.sh DIR` makes both. Rows without their servers are skipped with a message.
Verdicts are those of varied requests. `--baseline REV` compares with an earlier
revision instead (see `bench.baseline`), `--native-triton DIR` with Triton's own backend for ONNX
(see `bench.native`).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from bench import (
    baseline,
    clients,
    comparison_rows,
    models,
    native,
    payloads,
    processes,
    regions,
)
from bench.comparison_rows import ECHO, ON_GRPCIO, ONNX, ONNX_ON_GRPCIO, TRANSPORTS, TRITON
from bench.processes import Running
from bench.program import parser_of, run
from bench.rows import NO_GOAL, P50, RATE, Case

Start = Callable[[], AbstractContextManager[Running]]
ON_GRPCIO_FLAG = "--transport=grpcio"
REGIONS_FLAG = "--allow-client-shm=true"
REGION_MIB = 32


def main() -> int:
    """Run the chosen rows and print the table; return 1 if a row fell short."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--transport", choices=TRANSPORTS, action="append", help="only rows of these transports"
    )
    parser.add_argument(
        "--baseline", metavar="REV", help="compare with an earlier revision instead: a git name"
    )
    parser.add_argument(
        "--native-triton",
        type=Path,
        metavar="DIR",
        help="compare with the Triton installation in this folder, with its onnxruntime backend",
    )
    parser.add_argument(
        "--compiled",
        action="store_true",
        help="with --baseline or --native-triton: compile the last commit and measure that",
    )
    arguments = parser.parse_args()
    if arguments.baseline:
        return _compare_with_baseline(arguments)
    reason = native.missing(arguments.native_triton)
    if not reason:
        return _compare_with_native(arguments)
    print(f"skipped, all rows against native Triton: {reason}", file=sys.stderr)
    if arguments.native_triton is not None:
        return 2
    cases = [
        case
        for transport in arguments.transport or TRANSPORTS
        for case in (
            *comparison_rows.comparison_cases(transport, arguments.perf_analyzer),
            *_in_process(transport),
        )
        if arguments.only in case.name
    ]
    wanted = {name for case in cases for name in (case.subject, case.other)}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        memory = stack.enter_context(regions.shared(REGION_MIB))
        starts = _starts(folder, arguments.triton)
        servers = {
            name: stack.enter_context(start()) for name, start in starts.items() if name in wanted
        }
        for name in servers.keys() & {"tritonpy", ON_GRPCIO, TRITON}:
            regions.register(servers[name], memory)
        return run(arguments, cases, servers)


def _compare_with_baseline(arguments: argparse.Namespace) -> int:
    cases = [case for case in baseline.cases() if arguments.only in case.name]
    wanted = {name for case in cases for name in (case.subject, case.other)}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        starts = baseline.starts(folder, arguments.baseline, arguments.compiled)
        servers = {name: stack.enter_context(starts[name]()) for name in wanted}
        return run(
            arguments, cases, servers, lambda rows: baseline.estimate(rows, arguments.baseline)
        )


def _compare_with_native(arguments: argparse.Namespace) -> int:
    cases = [case for case in native.cases() if arguments.only in case.name]
    python = baseline.installed("HEAD", compiled=True) if arguments.compiled else sys.executable
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        models.write_onnx_pair(folder)
        servers = {
            native.SUBJECT: stack.enter_context(processes.tritonpy(folder, python=python)),
            native.NATIVE: stack.enter_context(native.start(arguments.native_triton, folder)()),
        }
        return run(arguments, cases, servers)


def _in_process(transport: str) -> list[Case]:
    """Return the rows of ONNX Runtime over HTTP, against the echo and Triton's Python backend."""
    if transport != "uvicorn":
        return []

    echo, large = ECHO[transport], payloads.identity()
    title = "HTTP on uvicorn, ONNX"
    cases = [
        Case(
            f"{title} 16 MiB identity, wrk",
            f"{echo} large",
            lambda server, seconds: clients.wrk(server, large, 2, seconds),
            0.6,
            subject=ONNX,
        )
    ]
    for other, in_flight, goal, figure in (
        (echo, 8, 0.55, RATE),
        (echo, 32, 0.55, RATE),
        (TRITON, 8, 1.2, RATE),
        (TRITON, 32, 1.2, RATE),
        (TRITON, 1, 1.15, P50),
    ):
        for form, name in ((clients.wrk_varied, "wrk, varied requests"), (clients.wrk, "wrk")):
            suffix = "" if figure == RATE else f" {figure}"
            cases.append(
                Case(
                    f"{title} add/sub, {in_flight} in flight, {name}{suffix}",
                    other,
                    partial(_load_add_sub, form, in_flight),
                    NO_GOAL if form is clients.wrk else goal,
                    figure,
                    ONNX,
                )
            )
    return cases


def _load_add_sub(
    form: Callable[..., clients.LoadResult], in_flight: int, server: Running, seconds: int
) -> clients.LoadResult:
    return form(server, payloads.add_sub(), in_flight, seconds)


def _starts(folder: Path, triton: Path | None) -> dict[str, Start]:
    """Return a start function per server that is available."""
    onnx, python = folder / "onnx", folder / "python"
    models.write_onnx(onnx)
    models.write_python_backend(python)
    models.write_python(python)
    starts: dict[str, Start] = {
        "tritonpy": lambda: processes.tritonpy(python, REGIONS_FLAG),
        ONNX: lambda: processes.tritonpy(onnx),
        ECHO["uvicorn"]: lambda: processes.echo("http", "add_sub"),
        f"{ECHO['uvicorn']} large": lambda: processes.echo("http", "identity"),
        ECHO["grpcio"]: lambda: processes.echo("grpc", "add_sub"),
        ON_GRPCIO: lambda: processes.tritonpy(python, REGIONS_FLAG, ON_GRPCIO_FLAG),
        ONNX_ON_GRPCIO: lambda: processes.tritonpy(onnx, ON_GRPCIO_FLAG),
        ECHO["h2"]: lambda: processes.echo("h2", "add_sub"),
    }
    if triton is not None:
        starts[TRITON] = lambda: processes.triton(triton, python)
    return starts


if __name__ == "__main__":
    sys.exit(main())
