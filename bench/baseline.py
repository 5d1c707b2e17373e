"""Rows of today's code against an earlier revision of it: `python -m bench.compare --baseline REV`.

The revision is checked out into a git worktree and installed into an environment of its own, below
`.bench/`, which later runs reuse. The last commit is installed beside it in the same way, so that
both servers run installed packages; with `--compiled`, its request path is compiled. Requests are
varied and identical; both servers serve the same models. For ONNX rows, the ratio new/old times the
measured ratio old/native Triton estimates the ratio against native Triton, where none is at hand.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from bench import clients, models, payloads, processes
from bench.clients import LoadResult
from bench.processes import ROOT, Running
from bench.rows import NO_GOAL, P50, RATE, Case, Row

FOLDER = ROOT / ".bench"
PACKAGES = ("core", "plugins/backend_onnx", "plugins/backend_python")
OLD, NEW, OLD_PYTHON, NEW_PYTHON = "the baseline", "tritonpy", "the baseline's", "tritonpy's"
# tritonpy at 8d6e105 / native Triton 2.51 with its onnxruntime backend, by protocol, model and
# requests in flight: rates, and the p50 with one in flight (bench/RESULTS.md).
NATIVE = {
    ("http", "single"): {1: 1.43, 8: 0.64, 32: 0.68, 64: 0.59},
    ("grpc", "single"): {1: 1.08, 8: 0.60, 32: 0.62, 64: 0.64},
    ("http", "batched"): {1: 0.99, 8: 0.84, 32: 0.86, 64: 1.26},
    ("grpc", "batched"): {1: 0.95, 8: 0.90, 32: 0.95, 64: 1.18},
    ("http varied", "single"): {1: 1.54, 8: 0.50, 32: 0.45},
}
NATIVE_REVISION = "8d6e105"
IN_FLIGHT = (1, 8, 32, 64)
BATCHING = {"single": "no batching", "batched": "dynamic batching"}
LOADS = {
    "http varied": clients.wrk_varied,
    "http": clients.wrk,
    "grpc varied": clients.grpc_varied,
    "grpc": clients.h2load,
}
TITLES = {
    "http varied": "HTTP, varied requests",
    "http": "HTTP",
    "grpc varied": "gRPC, varied requests",
    "grpc": "gRPC",
}
Start = Callable[[], AbstractContextManager[Running]]


def cases() -> Iterator[Case]:
    """Yield the rows: ONNX and Python models, each protocol, with and without batching."""
    for kind, subject, other in (("ONNX", NEW, OLD), ("Python", NEW_PYTHON, OLD_PYTHON)):
        for model in BATCHING:
            for protocol in LOADS:
                for in_flight in IN_FLIGHT:
                    yield Case(
                        _title(kind, model, protocol, in_flight),
                        other,
                        load_of(protocol, model, in_flight),
                        NO_GOAL,
                        P50 if in_flight == 1 else RATE,
                        subject,
                    )


def _title(kind: str, model: str, protocol: str, in_flight: int) -> str:
    p50 = " p50" if in_flight == 1 else ""
    return f"{kind} add/sub, {TITLES[protocol]}, {BATCHING[model]}, {in_flight} in flight{p50}"


def load_of(protocol: str, model: str, in_flight: int) -> Callable[[Running, int], LoadResult]:
    """Return the load of `protocol` on a model of add/sub."""
    payload = payloads.add_sub(model)
    return lambda server, seconds: LOADS[protocol](server, payload, in_flight, seconds)


def starts(folder: Path, revision: str, compiled: bool) -> dict[str, Start]:
    """Return a start function per server; install both revisions first."""
    onnx, python = folder / "onnx", folder / "python"
    models.write_onnx_pair(onnx)
    models.write_python_backend(python)
    old, new = installed(revision), installed("HEAD", compiled)
    return {
        OLD: lambda: processes.tritonpy(onnx, python=old),
        NEW: lambda: processes.tritonpy(onnx, python=new),
        OLD_PYTHON: lambda: processes.tritonpy(python, python=old),
        NEW_PYTHON: lambda: processes.tritonpy(python, python=new),
    }


def installed(revision: str, compiled: bool = False) -> str:
    """Return the interpreter of an environment with the packages of `revision`."""
    found = _git("rev-parse", "--short", revision)
    checkout = FOLDER / found / "checkout"
    environment = FOLDER / found / ("compiled" if compiled else "environment")
    python, done = environment / "bin" / "python", environment / "installed"
    if not done.exists():
        print(f"installing {found} into {environment}", file=sys.stderr, flush=True)
        if not checkout.exists():
            _git("worktree", "add", "--detach", str(checkout), found)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        packages = [str(checkout / package) for package in PACKAGES]
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
        if compiled:
            command = [str(python), str(checkout / "tools" / "install.py"), "--compiled"]
            subprocess.run([*command, "onnx", "python"], check=True)
        done.touch()
    return str(python)


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def estimate(rows: Sequence[Row], revision: str) -> str:
    """Return a table of the estimated ratios against native Triton.

    Returns an explanation if `revision` is not the one that was measured against it.
    """
    if not _git("rev-parse", revision).startswith(NATIVE_REVISION):
        return f"no estimate against native Triton: it was measured with {NATIVE_REVISION}"
    ratios = {row.case.name: row.verdict.ratio for row in rows}
    lines = ["| row | new / old | old / native | estimated against native |", "|---|---|---|---|"]
    for (protocol, model), native in NATIVE.items():
        for in_flight, measured in native.items():
            name = _title("ONNX", model, protocol, in_flight)
            if name in ratios:
                ratio = ratios[name]
                lines.append(f"| {name} | {ratio:.2f} | {measured:.2f} | {ratio * measured:.2f} |")
    return "\n".join(lines)
