"""Processes that repeat one piece of work on command, such as calls of a framework.

Such a process prints `ready`. Then it reads a number of seconds per line, works that long, and
writes a line of JSON: `{"runs": 12, "seconds": 1.02, "p50_us": 84000.0}`.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import IO

from bench.clients import LoadResult
from bench.processes import ROOT, Running, end


@dataclass(frozen=True)
class WorkProcess(Running):
    """Handle of such a process."""

    process: subprocess.Popen[str] | None = None

    def run_work(self, seconds: float) -> LoadResult:
        """Run the work for `seconds`.

        Raises RuntimeError with the output if the process ends instead.
        """
        assert self.process
        before = self.cpu_seconds()
        print(seconds, file=self.process.stdin, flush=True)
        result = json.loads(_line(self.process))
        cpu = (self.cpu_seconds() - before) * 1e6 / result["runs"]
        return LoadResult(result["runs"] / result["seconds"], result["p50_us"], cpu)


@contextlib.contextmanager
def work_process(name: str, module: str, *arguments: str) -> Iterator[WorkProcess]:
    """Start `python -m MODULE ARGUMENTS`, wait until it is ready, and end it on exit."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], cwd=ROOT, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        try:
            while _line(process) != "ready\n":  # skips the output of frameworks
                pass
            yield WorkProcess(name, process.pid, process=process)
        except RuntimeError as error:
            errors.seek(0)
            raise RuntimeError(f"{error}; it printed:\n{errors.read()[-3000:]}") from None
        finally:
            end(process)


def serve_commands(
    work: Callable[[], object], in_flight: int = 1, commands: IO[str] = sys.stdin
) -> None:
    """Serve as such a process: `in_flight` threads repeat `work` for the seconds in each line."""
    work()
    print("ready", flush=True)
    for command in commands:
        print(json.dumps(_run(work, in_flight, float(command))), flush=True)


def _run(work: Callable[[], object], in_flight: int, seconds: float) -> dict[str, float]:
    durations: list[float] = []
    begin = time.perf_counter()

    def run_work() -> None:
        while time.perf_counter() - begin < seconds:
            started = time.perf_counter()
            work()
            durations.append(time.perf_counter() - started)

    threads = [threading.Thread(target=run_work) for _ in range(in_flight - 1)]
    for thread in threads:
        thread.start()
    run_work()
    for thread in threads:
        thread.join()
    return {
        "runs": len(durations),
        "seconds": time.perf_counter() - begin,
        "p50_us": median(durations) * 1e6,
    }


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{' '.join(map(str, process.args))} ended with {process.wait()}")
    return line
