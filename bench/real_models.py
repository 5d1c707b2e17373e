"""Models of real sizes behind the server, against a loop of the framework: `bench.real_models`.

Run with `python -m bench.real_models`. Each ONNX model of `bench.real_model_files` is served
without a configuration, over HTTP and gRPC, with one and with four requests in flight. The other
process of a row calls ONNX Runtime in a loop, without any server; both use its default threads.
The ratio of the rates is what the server costs. The goal is 0.98 for a model that takes 10 ms or
more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import clients, payloads, processes
from bench.clients import LoadResult
from bench.processes import Running
from bench.real_model_files import MODELS
from bench.repeated_work import WorkProcess, serve_commands, work_process
from bench.rows import NO_GOAL, Case, Row, line, measure, table

LOOP = "ONNX Runtime alone"
GOAL, LONG_US = 0.98, 10_000
LOADS = {"HTTP": clients.wrk, "gRPC": clients.h2load}
IN_FLIGHT = (1, 4)


def main() -> int:
    """Print the rows as they are measured, then the table; return 1 if a row fell short."""
    if sys.argv[1:2] == ["loop"]:
        _loop(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", choices=MODELS, action="append", help="only this one")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="length of one run")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the server")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for name in arguments.model or MODELS:
        for row in _rows(name, arguments.python, arguments.pairs, arguments.seconds):
            rows.append(row)
            print(line(row), flush=True)
    print("", table(rows), sep="\n")
    return 1 if any(row.verdict.word == "short" for row in rows) else 0


def _rows(name: str, python: str, pairs: int, seconds: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name, "1", "model.onnx")
        MODELS[name].write(file)
        with (
            processes.tritonpy(Path(folder), python=python) as server,
            work_process(LOOP, "bench.real_models", "loop", name, str(file)) as loop,
        ):
            is_long = loop.run_work(1).p50_us >= LONG_US
            for protocol in LOADS:
                for in_flight in IN_FLIGHT:
                    title = f"{MODELS[name].title}, {protocol}, {in_flight} in flight"
                    goal = GOAL if is_long and in_flight > 1 else NO_GOAL
                    case = Case(title, LOOP, _load(name, protocol, in_flight), goal)
                    yield measure(case, server, loop, pairs, seconds)


def _load(name: str, protocol: str, in_flight: int) -> Callable[[Running, int], LoadResult]:
    import numpy as np

    model = MODELS[name]
    outputs = {"output": np.zeros((1, model.width), np.float32)}
    payload = payloads.payload(name, {model.name: model.row()}, outputs)

    def load(server: Running, seconds: int) -> LoadResult:
        if isinstance(server, WorkProcess):
            return server.run_work(seconds)
        return LOADS[protocol](server, payload, in_flight, seconds)

    return load


def _loop(name: str, file: str) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    inputs = {MODELS[name].name: MODELS[name].row()}
    serve_commands(lambda: session.run(None, inputs))


if __name__ == "__main__":
    sys.exit(main())
