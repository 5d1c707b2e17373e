"""Comparison of ensembles of three Python models with the real Triton, with the same files.

Run with `python -m bench.ensemble --triton FILE`. Rows and verdicts are as in `bench.compare`.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import clients, models, payloads, processes
from bench.clients import LoadResult
from bench.processes import Running
from bench.program import add_transport, flags_of, parser_of, run
from bench.rows import Case

GOAL = 1.2  # with 32 in flight; otherwise 1.0


def main() -> int:
    """Run the chosen rows and print the table; return 1 if a row fell short."""
    parser = parser_of(__doc__, needs=["--triton"])
    add_transport(parser)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        models.write_ensembles(folder)
        ours = stack.enter_context(processes.tritonpy(folder, *flags_of(arguments)))
        theirs = stack.enter_context(processes.triton(arguments.triton, folder))
        return run(arguments, cases(arguments.perf_analyzer), {"tritonpy": ours, "Triton": theirs})


def cases(perf_analyzer: Path | None = None) -> list[Case]:
    """Return all rows: HTTP and gRPC, models without and with dynamic batching."""
    found = []
    for model in ("chain", "batched_chain"):
        payload = payloads.add_sub(model)
        for in_flight in (1, 8, 32):
            goal = GOAL if in_flight == 32 else 1.0
            for protocol, load in (("HTTP, wrk", clients.wrk), ("gRPC, h2load", clients.h2load)):
                found.append(
                    Case(
                        f"{model}, {in_flight} in flight, {protocol}",
                        "Triton",
                        _load_function(load, payload, in_flight),
                        goal,
                    )
                )
            if perf_analyzer is not None:
                found += [
                    _perf_case(perf_analyzer, payload, in_flight, protocol, goal)
                    for protocol in ("http", "grpc")
                ]
    return found


def _load_function(
    load: Callable[[Running, payloads.Payload, int, int], LoadResult],
    payload: payloads.Payload,
    in_flight: int,
) -> Callable[[Running, int], LoadResult]:
    return lambda server, seconds: load(server, payload, in_flight, seconds)


def _perf_case(
    binary: Path, payload: payloads.Payload, in_flight: int, protocol: str, goal: float
) -> Case:
    def load(server: Running, _seconds: int) -> LoadResult:
        return clients.perf_analyzer(binary, server, payload, in_flight, protocol)

    return Case(
        f"{payload.model}, {in_flight} in flight, {protocol}, perf_analyzer", "Triton", load, goal
    )


if __name__ == "__main__":
    sys.exit(main())
