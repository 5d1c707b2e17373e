"""Effect of each interpreter and event-loop setting: `python -m bench.interpreter`.

Two servers run at the same time, one of them with a changed setting. Each row compares the changed
server with the unchanged one: a ratio of rates below 1 shows the benefit of the setting. The kernel
counts context switches, so that other load on the machine does not affect them.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import psutil

from bench import clients, models, payloads, processes
from bench.clients import LoadResult
from bench.processes import Running
from bench.program import parser_of
from bench.verdict import judge

UNCHANGED = "pass"
_SETTINGS = {
    "switch interval 5 ms (Python's own)": "i.SWITCH_INTERVAL_S = 0.005",
    "switch interval 0.05 ms": "i.SWITCH_INTERVAL_S = 0.00005",
    "Python's default collector: 700, 10, 10": "i.gc.set_threshold = lambda *_: None",
    "nothing frozen after the start": "i.gc.freeze = lambda: None",
    "collector off": "i.gc.set_threshold = lambda *_: i.gc.disable()",
    "freed memory returned to the system immediately": "i.MALLOC_OPTIONS = ()",
    "asyncio's own loop": (
        "import asyncio, tritonpy.server.event_loops as l; l.event_loop_factory = lambda: "
        "asyncio.new_event_loop"
    ),
    "no execution on the event loop": (
        "import tritonpy.runners.inline_policy as q; q.REQUIRED_FAST = 1 << 60"
    ),
}
_PROGRAM = (
    "import sys, tritonpy.server.interpreter as i; {change}; from tritonpy.cli import main; "
    "sys.exit(main())"
)


@dataclass(frozen=True)
class Workload:
    """A model and its number of requests in flight."""

    model: str
    in_flight: int

    def __str__(self) -> str:
        return f"{self.model}, {self.in_flight} in flight"


WORKLOADS = (
    Workload("add_sub", 1),
    Workload("add_sub", 32),
    Workload("batched", 1),
    Workload("batched", 32),
)


def main() -> None:
    """Print a row per setting and workload."""
    parser = parser_of(__doc__)
    arguments = parser.parse_args()
    print(
        "| setting | load, HTTP, wrk | rate [90 %] | p50 [90 %] | CPU us/request, "
        "changed / unchanged | switches/request |"
    )
    print("|---|---|---|---|---|---|")
    for name, change in _SETTINGS.items():
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            models.write_python_backend(Path(folder))
            models.write_onnx(Path(folder))
            with (
                _server(Path(folder), change) as changed,
                _server(Path(folder), UNCHANGED) as plain,
            ):
                for workload in WORKLOADS:
                    print(
                        _row(name, workload, changed, plain, arguments.pairs, arguments.seconds),
                        flush=True,
                    )


@contextlib.contextmanager
def _server(repository: Path, change: str) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "python")
        program = _PROGRAM.format(change=change)
        # The caller runs `python -m tritonpy serve …`; the script drops the first two arguments.
        python.write_text(
            f'#!/bin/sh\nshift 2\nexec {sys.executable} -c {shlex.quote(program)} "$@"\n'
        )
        python.chmod(0o755)
        with processes.tritonpy(repository, python=str(python)) as server:
            yield server


def _row(
    name: str, workload: Workload, changed: Running, plain: Running, pairs: int, seconds: int
) -> str:
    load = partial(_loaded, workload=workload, seconds=seconds)
    for server in (changed, plain):
        load(server)
    both = [(load(changed), load(plain)) for _ in range(pairs)]
    figures = [[each[side] for each in both] for side in (0, 1)]
    rate = judge(*[[one.rate for one, _ in side] for side in figures], None)
    p50 = judge(*[[one.p50_us for one, _ in side] for side in figures], None)
    cpu = " / ".join(f"{median(one.cpu_us for one, _ in side):.0f}" for side in figures)
    switches = " / ".join(f"{median(count for _, count in side):.2f}" for side in figures)
    return f"| {name} | {workload} | {rate} | {p50} | {cpu} | {switches} |"


def _loaded(server: Running, workload: Workload, seconds: int) -> tuple[LoadResult, float]:
    """Return the client's result and the server's context switches per request."""
    before = _switches(server)
    load = clients.wrk(server, payloads.add_sub(workload.model), workload.in_flight, seconds)
    return load, (_switches(server) - before) / (load.rate * seconds)


def _switches(server: Running) -> int:
    total = 0
    for process in (
        psutil.Process(server.pid),
        *psutil.Process(server.pid).children(recursive=True),
    ):
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                status = (thread / "status").read_text()
                total += sum(
                    int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line
                )
    return total


if __name__ == "__main__":
    main()
