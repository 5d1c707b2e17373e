"""Sequences against the real Triton: `python -m bench.sequences --triton FILE ...`.

The Python model adds up the values of each sequence. Rows cover both strategies, 1 and 4 instances,
gRPC streams and HTTP. A sequence has 20 requests. Rows and verdicts are as in `bench.compare`.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import clients, processes
from bench.clients import LoadResult
from bench.processes import Running
from bench.program import add_transport, flags_of, parser_of, run
from bench.rows import P50, Case, Row
from bench.verdict import judge_combined

STRATEGIES = ("direct", "oldest")
INSTANCES = (1, 4)
PROTOCOLS = {"gRPC stream": ("grpc", "--streaming"), "HTTP": ("http",)}
SEQUENCES = (1, 16)  # concurrent sequences
LENGTH = 20
CONFIG = """\
backend: "python"
max_batch_size: 8
input [{{ name: "INPUT" data_type: TYPE_INT32 dims: [1] }}]
output [{{ name: "OUTPUT" data_type: TYPE_INT32 dims: [1] }}]
instance_group [{{ count: {count} kind: KIND_CPU }}]
sequence_batching {{
  max_sequence_idle_microseconds: 5000000
  {strategy} {{ }}
  control_input [
    {{ name: "START" control [{{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }}] }},
    {{ name: "READY" control [{{ kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] }}] }},
    {{ name: "CORRID" control [{{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }}] }}
  ]
}}
"""
MODEL_PY = """\
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        inputs = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        total = 0
        if inputs["READY"][0, 0]:
            name = int(inputs["CORRID"][0, 0])
            before = 0 if inputs["START"][0, 0] else self.sums.get(name, 0)
            total = before + inputs["INPUT"]
            self.sums[name] = total
        output = pb_utils.Tensor("OUTPUT", np.array(total, np.int32).reshape(1, 1))
        return pb_utils.InferenceResponse([output])
"""


def main() -> int:
    """Run the chosen rows and print the table; return 1 if a row fell short."""
    parser = parser_of(__doc__, needs=["--triton", "--perf-analyzer"])
    add_transport(parser)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write(folder)
        ours = stack.enter_context(processes.tritonpy(folder, *flags_of(arguments)))
        theirs = stack.enter_context(processes.triton(arguments.triton, folder))
        return run(
            arguments,
            cases(arguments.perf_analyzer),
            {"tritonpy": ours, "Triton": theirs},
            combined_verdict,
        )


def combined_verdict(rows: Sequence[Row]) -> str:
    """Return the combined verdict of all rows that compare rates."""
    rates = [row for row in rows if not row.case.latency]
    if not rates:
        return "no row compares rates"
    pairs = [
        ([load.rate for load in row.ours], [load.rate for load in row.theirs]) for row in rates
    ]
    return f"{len(rates)} rows together: {judge_combined(pairs, 1.0)}, at least 1.0"


def write(repository: Path) -> None:
    """Write the model with each strategy and number of instances."""
    for strategy in STRATEGIES:
        for count in INSTANCES:
            folder = repository / f"{strategy}_{count}"
            (folder / "1").mkdir(parents=True)
            (folder / "config.pbtxt").write_text(CONFIG.format(strategy=strategy, count=count))
            (folder / "1/model.py").write_text(MODEL_PY)


def cases(binary: Path) -> list[Case]:
    """Return all rows; those of a single sequence compare latency."""
    return [
        _case(binary, f"{strategy}_{count}", protocol, in_flight)
        for strategy in STRATEGIES
        for count in INSTANCES
        for protocol in PROTOCOLS
        for in_flight in SEQUENCES
    ]


def _case(binary: Path, model: str, protocol: str, in_flight: int) -> Case:
    load = _load(binary, model, PROTOCOLS[protocol], in_flight)
    strategy, _, count = model.partition("_")
    name = f"{strategy}, {count} instances, {protocol}, {in_flight} sequences"
    if in_flight == 1:
        return Case(f"{name} p50", "Triton", load, 1.15, figure=P50)
    return Case(name, "Triton", load, 1.0)


def _load(
    binary: Path, model: str, protocol: tuple[str, ...], in_flight: int
) -> Callable[[Running, int], LoadResult]:
    more = (
        f"--sequence-length={LENGTH}",
        "--sequence-length-variation=0",
        "--sequence-id-range=1:1000000",
    )
    return lambda server, seconds: clients.perf_analyzer_with(
        binary, server, model, in_flight, protocol[0], seconds, (*protocol[1:], *more)
    )


if __name__ == "__main__":
    sys.exit(main())
