"""Comparison of the Python backend with the real Triton's.

Run with `python -m bench.python_backend --triton FILE`. Rows and verdicts are as in
`bench.compare`.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import clients, codec, models, payloads, processes
from bench.clients import LoadResult
from bench.processes import Running
from bench.program import arguments_of, run
from bench.rows import P50, Case


def main() -> int:
    """Run the chosen rows and print the table; return 1 if a row fell short."""
    arguments = arguments_of(__doc__, needs=["--triton"])
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        models.write_python_backend(folder)
        ours = stack.enter_context(processes.tritonpy(folder))
        theirs = stack.enter_context(processes.triton(arguments.triton, folder))
        others = {"Triton": theirs, codec.RUNNING.name: codec.RUNNING}
        return run(
            arguments,
            [*_cases(arguments.perf_analyzer), STRINGS_ALONE],
            {"tritonpy": ours, **others},
        )


def _cases(perf_analyzer: Path | None) -> list[Case]:
    single, batched = payloads.add_sub("single"), payloads.add_sub("batched")

    def http(payload: payloads.Payload, in_flight: int) -> Callable[[Running, int], LoadResult]:
        return lambda server, seconds: clients.wrk(server, payload, in_flight, seconds)

    cases = [
        Case("single, 1 in flight, wrk p50", "Triton", http(single, 1), 1.2, figure=P50),
        *(
            Case(f"single, {count} in flight, wrk", "Triton", http(single, count), 1.0)
            for count in (8, 32, 64)
        ),
        *(
            Case(f"batched, {count} in flight, wrk", "Triton", http(batched, count), 1.2)
            for count in (32, 64)
        ),
        Case("16 MiB through, 2 in flight, wrk", "Triton", http(payloads.identity(), 2), 1.0),
        Case("10,000 strings read, 2 in flight, wrk", "Triton", http(payloads.strings(), 2), 5.0),
    ]
    if perf_analyzer is not None:
        cases += [
            _perf_case(perf_analyzer, payload, count)
            for payload in (single, batched)
            for count in (1, 32, 64)
        ]
    return cases


def _strings(server: Running, seconds: int) -> LoadResult:
    if server is codec.RUNNING:
        return codec.load(seconds)
    load = clients.wrk(server, payloads.strings(), 2, seconds)
    return LoadResult(
        load.rate, 1e6 / load.rate, load.cpu_us
    )  # time per request of the throughput, because two are in flight


STRINGS_ALONE = Case(
    "10,000 strings read, us per request", "codec alone", _strings, 1.5, figure=P50
)


# With a thread per request in flight, perf_analyzer often hangs on two cores, with every server.
FEW_THREADS = ("--async", "--max-threads=2")


def _perf_case(binary: Path, payload: payloads.Payload, in_flight: int) -> Case:
    def load(server: Running, _seconds: int) -> LoadResult:
        more = FEW_THREADS if in_flight > 1 else ()
        return clients.perf_analyzer_with(binary, server, payload.model, in_flight, "http", 3, more)

    if in_flight == 1:
        return Case(
            f"{payload.model}, 1 in flight, perf_analyzer p50", "Triton", load, 1.2, figure=P50
        )
    goal = 1.2 if payload.model == "batched" else 1.0
    return Case(f"{payload.model}, {in_flight} in flight, perf_analyzer", "Triton", load, goal)


if __name__ == "__main__":
    sys.exit(main())
