"""Processes that do one piece of work again and again for as long as they are told: a framework called directly, or a server called in its own process.

Such a process prints `ready`, then reads a number of seconds per line and answers each with a line of JSON:
`{"runs": 12, "seconds": 1.02, "p50_us": 84000.0}`.
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

from bench.clients import Load
from bench.processes import ROOT, Running, end


@dataclass(frozen=True)
class Looping(Running):
    """The other end of such a process."""

    process: subprocess.Popen[str] | None = None

    def loop(self, seconds: float) -> Load:
        """Let it work for `seconds`; raises RuntimeError with what it printed when it ends instead."""
        assert self.process
        before = self.cpu_seconds()
        print(seconds, file=self.process.stdin, flush=True)
        told = json.loads(_line(self.process))
        cpu = (self.cpu_seconds() - before) * 1e6 / told["runs"]
        return Load(told["runs"] / told["seconds"], told["p50_us"], cpu)


@contextlib.contextmanager
def looping(name: str, module: str, *arguments: str) -> Iterator[Looping]:
    """Run `python -m MODULE ARGUMENTS` until it is ready; at the end it is gone."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], cwd=ROOT, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        try:
            while _line(process) != "ready\n":  # frameworks print as they please
                pass
            yield Looping(name, process.pid, process=process)
        except RuntimeError as error:
            errors.seek(0)
            raise RuntimeError(f"{error}; it printed:\n{errors.read()[-3000:]}") from None
        finally:
            end(process)


def obey(work: Callable[[], object], in_flight: int = 1, commands: IO[str] = sys.stdin) -> None:
    """Be such a process: `in_flight` threads do `work`, for as long as each line of `commands` says."""
    work()
    print("ready", flush=True)
    for command in commands:
        print(json.dumps(_run(work, in_flight, float(command))), flush=True)


def _run(work: Callable[[], object], in_flight: int, seconds: float) -> dict[str, float]:
    took: list[float] = []
    begin = time.perf_counter()

    def loop() -> None:
        while time.perf_counter() - begin < seconds:
            started = time.perf_counter()
            work()
            took.append(time.perf_counter() - started)

    threads = [threading.Thread(target=loop) for _ in range(in_flight - 1)]
    for thread in threads:
        thread.start()
    loop()
    for thread in threads:
        thread.join()
    return {"runs": len(took), "seconds": time.perf_counter() - begin, "p50_us": median(took) * 1e6}


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{' '.join(map(str, process.args))} ended with {process.wait()}")
    return line
