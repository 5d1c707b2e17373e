"""Cost of further Python instances: `python -m bench.instances [--triton FILE]`.

The model's import takes a second. It builds a table of 64 MiB and shares weights of 64 MiB. Memory
is the proportional set size (Linux) of the worker processes: a page mapped by two processes counts
half for each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import psutil

from bench import processes
from bench.processes import Running

COUNTS = (1, 2, 4)
MODEL_PY = """
import time

import numpy as np
import triton_python_backend_utils as pb_utils

begin = time.process_time()
while time.process_time() - begin < 1:  # simulates the import of a framework
    pass
TABLE = np.ones(8 << 20)


class TritonPythonModel:
    def initialize(self, args):
        if hasattr(pb_utils, "shared_arrays"):
            self.weights = pb_utils.shared_arrays("weights", lambda: {"w": np.ones(8 << 20)})
        else:
            self.weights = {"w": np.ones(8 << 20)}

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy())])
            for request in requests
        ]
"""
CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
instance_group { count: %d kind: KIND_CPU }
"""
MIB = 1 << 20


def main() -> int:
    """Load the model with each number of instances `rounds` times, and print times and memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--triton", type=Path, help="start script of the real Triton")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _write(folder)
        servers = [stack.enter_context(processes.tritonpy(folder, "--model-control-mode=explicit"))]
        if arguments.triton:
            servers.append(
                stack.enter_context(
                    processes.triton(arguments.triton, folder, "--model-control-mode=explicit")
                )
            )
        for server in servers:
            print(*_lines(server, arguments.rounds), "", sep="\n")
    return 0


def _write(repository: Path) -> None:
    for count in COUNTS:
        (repository / f"with_{count}/1").mkdir(parents=True)
        (repository / f"with_{count}/1/model.py").write_text(MODEL_PY)
        (repository / f"with_{count}/config.pbtxt").write_text(CONFIG % count)


def _lines(server: Running, rounds: int) -> Iterator[str]:
    yield f"{server.name}: instances, seconds to load, MiB in their processes, per further instance"
    first: tuple[float, float] = (0, 0)
    for count in COUNTS:
        runs = [_loaded(server, f"with_{count}") for _ in range(rounds)]
        seconds, mib = median(run[0] for run in runs), median(run[1] for run in runs)
        line = f"{count:4d} {seconds:8.2f} s {mib:8.1f} MiB"
        if count == 1:
            first = seconds, mib
        else:
            line += (
                f"   {(seconds - first[0]) / (count - 1):+.2f} s "
                f"{(mib - first[1]) / (count - 1):+.1f} MiB"
            )
        yield line


def _loaded(server: Running, model: str) -> tuple[float, float]:
    before = server.children()
    begin = time.perf_counter()
    _post(server, model, "load")
    seconds = time.perf_counter() - begin
    mib = (
        sum(psutil.Process(pid).memory_full_info().pss for pid in server.children() - before) / MIB
    )
    _post(server, model, "unload")
    while server.children() - before:
        time.sleep(0.05)
    return seconds, mib


def _post(server: Running, model: str, action: str) -> None:
    url = f"http://127.0.0.1:{server.http}/v2/repository/models/{model}/{action}"
    with urllib.request.urlopen(urllib.request.Request(url, b"{}", method="POST")) as response:
        response.read()


if __name__ == "__main__":
    sys.exit(main())
