"""What the settings of the interpreter and the event loop bring, one at a time: `python -m bench.interpreter`.

Two servers run side by side, one of them with a setting changed; each row is the changed one against the server as it is, so that a ratio of rates below 1
says what the setting is good for. Context switches are counted by the kernel, which no neighbour disturbs.
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
from bench.clients import Load
from bench.processes import Running
from bench.program import parser_of
from bench.verdict import judge

AS_IT_IS = "pass"
_SETTINGS = {
    "switch interval 5 ms (Python's own)": "i.SWITCH_INTERVAL_S = 0.005",
    "switch interval 0.05 ms": "i.SWITCH_INTERVAL_S = 0.00005",
    "collector as Python has it: 700, 10, 10": "i.gc.set_threshold = lambda *_: None",
    "nothing frozen after the start": "i.gc.freeze = lambda: None",
    "collector off": "i.gc.set_threshold = lambda *_: i.gc.disable()",
    "freed memory goes back at once": "i.MALLOC_OPTIONS = ()",
    "asyncio's own loop": "import asyncio, tritonpy.loops as l; l.event_loop_factory = lambda: asyncio.new_event_loop",
    "no execution on the event loop": "import tritonpy.runners.quickness as q; q.SURE = 1 << 60",
}
_PROGRAM = "import sys, tritonpy.interpreter as i; {change}; from tritonpy.cli import main; sys.exit(main())"


@dataclass(frozen=True)
class Work:
    """A model and how it is loaded."""

    model: str
    in_flight: int

    def __str__(self) -> str:
        return f"{self.model}, {self.in_flight} in flight"


WORKS = (Work("add_sub", 1), Work("add_sub", 32), Work("batched", 1), Work("batched", 32))


def main() -> None:
    """Print a row for each setting and load."""
    parser = parser_of(__doc__)
    arguments = parser.parse_args()
    print(
        "| setting | load, HTTP, wrk | rate [90 %] | p50 [90 %] | CPU us/request, changed / as it is | switches/request |"
    )
    print("|---|---|---|---|---|---|")
    for name, change in _SETTINGS.items():
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            models.write_python_backend(Path(folder))
            models.write_onnx(Path(folder))
            with _server(Path(folder), change) as changed, _server(Path(folder), AS_IT_IS) as plain:
                for work in WORKS:
                    print(_row(name, work, changed, plain, arguments.pairs, arguments.seconds), flush=True)


@contextlib.contextmanager
def _server(repository: Path, change: str) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "python")
        program = _PROGRAM.format(change=change)
        # Called as `python -m tritonpy serve …`: the first two arguments are dropped.
        python.write_text(f'#!/bin/sh\nshift 2\nexec {sys.executable} -c {shlex.quote(program)} "$@"\n')
        python.chmod(0o755)
        with processes.tritonpy(repository, python=str(python)) as server:
            yield server


def _row(name: str, work: Work, changed: Running, plain: Running, pairs: int, seconds: int) -> str:
    load = partial(_loaded, work=work, seconds=seconds)
    for server in (changed, plain):
        load(server)
    both = [(load(changed), load(plain)) for _ in range(pairs)]
    figures = [[each[side] for each in both] for side in (0, 1)]
    rate = judge(*[[one.rate for one, _ in side] for side in figures], None)
    p50 = judge(*[[one.p50_us for one, _ in side] for side in figures], None)
    cpu = " / ".join(f"{median(one.cpu_us for one, _ in side):.0f}" for side in figures)
    switches = " / ".join(f"{median(count for _, count in side):.2f}" for side in figures)
    return f"| {name} | {work} | {rate} | {p50} | {cpu} | {switches} |"


def _loaded(server: Running, work: Work, seconds: int) -> tuple[Load, float]:
    """Return what the client saw, and how often the server's threads gave up the processor per request."""
    before = _switches(server)
    load = clients.wrk(server, payloads.add_sub(work.model), work.in_flight, seconds)
    return load, (_switches(server) - before) / (load.rate * seconds)


def _switches(server: Running) -> int:
    total = 0
    for process in (psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)):
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                status = (thread / "status").read_text()
                total += sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)
    return total


if __name__ == "__main__":
    main()
