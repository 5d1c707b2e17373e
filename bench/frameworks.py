"""Comparison of each backend with its framework called directly: `python -m bench.frameworks`.

An execution takes at least 10 ms (a batch of digits, or the sentence encoder). The same batch runs
through the server, with the in-process client and over HTTP, and directly in the framework, each
in its own process with the framework's default threads. Then two instances of one thread are
compared with one. A single digit has no goal. Rows and verdicts are as in `bench.compare`. It needs
the environment with all backends:

    python3 tests/run.py frameworks -- -k none
    .test-venv/frameworks/bin/python -m bench.frameworks
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from bench import clients, payloads, processes
from bench.clients import LoadResult
from bench.framework_work import SUBJECTS, Subject, make, serve_as
from bench.processes import Running
from bench.repeated_work import WorkProcess, work_process
from bench.rows import Case, Row, line, measure, table

GOAL, INSTANCES_GOAL, NONE = 0.9, 1.6, None
DIRECT, ONE = "framework alone", "one instance"


def main() -> int:
    """Run the chosen rows and print the table; return 1 if a row fell short."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="length of one run")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--models", type=Path, help="folder to keep the model files in")
    arguments = parser.parse_args()
    chosen = tuple(subject for subject in SUBJECTS if arguments.only in subject.name)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        made = arguments.models or Path(folder, "made")
        make(made, chosen)
        for number, subject in enumerate(chosen):
            for row in _rows(
                made, Path(folder, str(number)), subject, arguments.pairs, arguments.seconds
            ):
                rows.append(row)
                print(line(row), flush=True)
    print()
    print(table(rows))
    return 1 if any(row.verdict.word == "short" for row in rows) else 0


def _rows(
    made: Path, repository: Path, subject: Subject, pairs: int, seconds: int
) -> Iterator[Row]:
    serve_as(made, repository, subject, "plain")
    serve_as(made, repository, subject, "one", threads=1)
    serve_as(made, repository, subject, "two", count=2, threads=1)
    version, full = made / subject.made / "1", subject.kind.batch
    with _framework_process(subject, version, full) as direct:
        for in_flight in (1, 2):
            with _server_process(repository, "plain", subject, full, in_flight) as server:
                name = f"{subject.name} x {full}, in-process, {in_flight} in flight"
                yield measure(Case(name, DIRECT, _run_work, GOAL), server, direct, pairs, seconds)
        yield _over_http(repository, subject, full, direct, pairs, seconds)
    with (
        _framework_process(subject, version, 1) as direct,
        _server_process(repository, "plain", subject, 1, 1) as server,
    ):
        case = Case(f"{subject.name} x 1, in-process", DIRECT, _run_work, NONE)
        yield measure(case, server, direct, pairs, seconds)
    with (
        _server_process(repository, "two", subject, full, 4) as two,
        _server_process(repository, "one", subject, full, 4) as one,
    ):
        case = Case(
            f"{subject.name} x {full}, two instances of one thread", ONE, _run_work, INSTANCES_GOAL
        )
        yield measure(case, two, one, pairs, seconds)


def _over_http(
    repository: Path, subject: Subject, rows: int, direct: WorkProcess, pairs: int, seconds: int
) -> Row:
    payload = payloads.payload("plain", subject.kind.arrays(rows), subject.kind.output_arrays(rows))

    def load(server: Running, length: int) -> LoadResult:
        return (
            server.run_work(length)
            if isinstance(server, WorkProcess)
            else clients.wrk(server, payload, 2, length)
        )

    flags = ("--model-control-mode=explicit", "--load-model=plain")
    with processes.tritonpy(repository, *flags) as server:
        case = Case(f"{subject.name} x {rows}, HTTP, 2 in flight, wrk", DIRECT, load, GOAL)
        return measure(case, server, direct, pairs, seconds)


def _run_work(server: Running, seconds: int) -> LoadResult:
    assert isinstance(server, WorkProcess)
    return server.run_work(seconds)


def _framework_process(
    subject: Subject, version: Path, rows: int
) -> AbstractContextManager[WorkProcess]:
    return work_process(DIRECT, "bench.direct", subject.name, str(version), str(rows))


def _server_process(
    repository: Path, model: str, subject: Subject, rows: int, in_flight: int
) -> AbstractContextManager[WorkProcess]:
    return work_process(
        "tritonpy",
        "bench.in_process",
        str(repository),
        model,
        subject.name,
        str(rows),
        str(in_flight),
    )


if __name__ == "__main__":
    sys.exit(main())
