"""Backends in C: their cost in tritonpy, and NVIDIA's own Python backend in both servers.

Run with `python -m bench.c_backends`, for the second part with `--triton FILE`. The first part
needs gcc. It times executions in the server's process, less the time that the backend reports for
itself. In the second part both servers load the same `libtriton_python.so`; rows and verdicts are
as in `bench.compare`.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np

from bench import clients, models, payloads, processes
from bench.clients import LoadResult
from bench.processes import Running
from bench.program import parser_of, run
from bench.rows import P50, Case
from tritonpy import Batch, CallbackSink, InferRequest, Tensor, now_ns
from tritonpy_backend_c import include_directory
from tritonpy_backend_c.backend import CBackend
from tritonpy_testing import BackendHarness, model_config

SOURCE = Path(__file__).parent / "echo_backend.c"
CONFIG = """
    backend: "echo" max_batch_size: 8
    input { name: "INPUT0" data_type: TYPE_INT32 dims: 16 }
    input { name: "INPUT1" data_type: TYPE_INT32 dims: 16 }
    output { name: "OUTPUT0" data_type: TYPE_INT32 dims: 16 }
    output { name: "OUTPUT1" data_type: TYPE_INT32 dims: 16 }
    parameters { key: "isolation" value { string_value: "thread" } }
"""
SIZES = (1, 4, 8)  # requests of an execution
EXECUTIONS = 5000
ROUNDS = 9


def main() -> int:
    """Print both tables; return 1 if a row fell short."""
    parser = parser_of(__doc__)
    arguments = parser.parse_args()
    print("| requests in an execution | us of the server per execution | per request |")
    print("|---|---|---|")
    for size in SIZES:
        figures = sorted(_overhead_us(size))
        middle = median(figures)
        print(
            f"| {size} | {middle:.1f} ({figures[0]:.1f} to {figures[-1]:.1f}) "
            f"| {middle / size:.1f} |",
            flush=True,
        )
    if arguments.triton is None:
        return 0
    print()
    return _compare(arguments)


def _overhead_us(size: int) -> list[float]:
    """Return the time of an execution without that of the backend itself, one per round."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "1").mkdir()
        library = folder / "1" / "libtriton_echo.so"
        include = f"-I{include_directory()}"
        command = ["gcc", "-shared", "-fPIC", "-O2", include, "-o", str(library), str(SOURCE)]
        subprocess.run(command, check=True)
        with BackendHarness(CBackend, model_config(CONFIG), folder) as harness:
            return [_round_us(harness, size) for _ in range(ROUNDS + 1)][1:]


def _round_us(harness: BackendHarness, size: int) -> float:
    sink = CallbackSink(lambda *_: None)
    data = np.arange(16, dtype=np.int32).reshape(1, 16)
    spent = 0
    for number in range(EXECUTIONS):
        inputs = {name: Tensor.from_numpy(name, data + number) for name in ("INPUT0", "INPUT1")}
        requests = [InferRequest("m", inputs, sink, 1) for _ in range(size)]
        batch = Batch(requests, model=harness.model, start_ns=now_ns())
        start = now_ns()
        harness.instance.execute(batch)
        spent += now_ns() - start - (batch.infer_end_ns - batch.input_end_ns)
    return spent / EXECUTIONS / 1000


def _compare(arguments: argparse.Namespace) -> int:
    root = arguments.triton.resolve().parents[1]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        models.write_python_backend(folder / "models")
        for config in (folder / "models").glob("*/config.pbtxt"):
            config.write_text(config.read_text() + '\nruntime: "libtriton_python.so"\n')
        settings = folder / "server.yaml"
        settings.write_text("\n".join(_environment(root)))
        flags = (f"--config={settings}", f"--backend-directory={root / 'triton' / 'backends'}")
        ours = stack.enter_context(processes.tritonpy(folder / "models", *flags))
        theirs = stack.enter_context(processes.triton(arguments.triton, folder / "models"))
        return run(arguments, _cases(), {"tritonpy": ours, "Triton": theirs})


def _environment(root: Path) -> Iterator[str]:
    """Yield the lines of server.yaml with what NVIDIA's library and its processes need."""
    python = root / "venv" / "bin" / "python"
    script = (
        "import sysconfig; print(sysconfig.get_paths()['purelib'], "
        "sysconfig.get_config_var('LIBDIR'))"
    )
    site, libraries = subprocess.check_output([python, "-c", script], text=True).split()
    yield "backend_defaults:"
    yield "  environment:"
    yield f"    LD_LIBRARY_PATH: '{site}/nvidia_pytriton.libs:{libraries}'"
    yield f"    PATH: '{python.parent}:/usr/bin:/bin'"
    yield f"    PYTHONPATH: '{site}'"


def _cases() -> list[Case]:
    single, batched = payloads.add_sub("single"), payloads.add_sub("batched")

    def http(payload: payloads.Payload, in_flight: int) -> Callable[[Running, int], LoadResult]:
        return lambda server, seconds: clients.wrk(server, payload, in_flight, seconds)

    return [
        Case("single, 1 in flight, wrk p50", "Triton", http(single, 1), 1.0, figure=P50),
        *(
            Case(f"single, {count} in flight, wrk", "Triton", http(single, count), 1.0)
            for count in (8, 32)
        ),
        *(
            Case(f"batched, {count} in flight, wrk", "Triton", http(batched, count), 1.0)
            for count in (8, 32, 64)
        ),
        Case("16 MiB through, 2 in flight, wrk", "Triton", http(payloads.identity(), 2), 1.0),
    ]


if __name__ == "__main__":
    sys.exit(main())
