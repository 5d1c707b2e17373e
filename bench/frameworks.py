"""Each backend beside its framework called directly: `python -m bench.frameworks`.

An execution takes at least 10 ms (a batch of digits, the sentence encoder); the same batch goes through the server, by the in-process client and over
HTTP, and into the framework in a loop, each in a process of its own with the framework's own number of threads. Then two instances of one thread each beside
one. A single digit is reported and has no goal. Rows and verdicts are those of `bench.compare`. It runs in the environment of the tests of all backends:

    python3 tests/run.py frameworks -- -k none && .test-venv/frameworks/bin/python -m bench.frameworks
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from bench import clients, payloads, processes
from bench.clients import Load
from bench.framework_work import SUBJECTS, Subject, make, serve_as
from bench.looping import Looping, looping
from bench.processes import Running
from bench.rows import Case, Row, line, measure, table

GOAL, INSTANCES_GOAL, NONE = 0.9, 1.6, None
DIRECT, ONE = "framework alone", "one instance"


def main() -> int:
    """Run the chosen rows and print the table; 1 when a row fell short."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="length of one run")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--models", type=Path, help="folder that keeps the model files for the next run")
    arguments = parser.parse_args()
    chosen = tuple(subject for subject in SUBJECTS if arguments.only in subject.name)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        made = arguments.models or Path(folder, "made")
        make(made, chosen)
        for number, subject in enumerate(chosen):
            for row in _rows(made, Path(folder, str(number)), subject, arguments.pairs, arguments.seconds):
                rows.append(row)
                print(line(row), flush=True)
    print()
    print(table(rows))
    return 1 if any(row.verdict.word == "short" for row in rows) else 0


def _rows(made: Path, repository: Path, subject: Subject, pairs: int, seconds: int) -> Iterator[Row]:
    serve_as(made, repository, subject, "plain")
    serve_as(made, repository, subject, "one", threads=1)
    serve_as(made, repository, subject, "two", count=2, threads=1)
    version, full = made / subject.made / "1", subject.kind.batch
    with _direct(subject, version, full) as direct:
        for in_flight in (1, 2):
            with _server(repository, "plain", subject, full, in_flight) as server:
                name = f"{subject.name} x {full}, in-process, {in_flight} in flight"
                yield measure(Case(name, DIRECT, _loop, GOAL), server, direct, pairs, seconds)
        yield _over_http(repository, subject, full, direct, pairs, seconds)
    with _direct(subject, version, 1) as direct, _server(repository, "plain", subject, 1, 1) as server:
        case = Case(f"{subject.name} x 1, in-process", DIRECT, _loop, NONE)
        yield measure(case, server, direct, pairs, seconds)
    with (
        _server(repository, "two", subject, full, 4) as two,
        _server(repository, "one", subject, full, 4) as one,
    ):
        case = Case(f"{subject.name} x {full}, two instances of one thread", ONE, _loop, INSTANCES_GOAL)
        yield measure(case, two, one, pairs, seconds)


def _over_http(repository: Path, subject: Subject, rows: int, direct: Looping, pairs: int, seconds: int) -> Row:
    payload = payloads.payload("plain", subject.kind.arrays(rows), subject.kind.answers(rows))

    def load(server: Running, length: int) -> Load:
        return server.loop(length) if isinstance(server, Looping) else clients.wrk(server, payload, 2, length)

    flags = ("--model-control-mode=explicit", "--load-model=plain")
    with processes.tritonpy(repository, *flags) as server:
        case = Case(f"{subject.name} x {rows}, HTTP, 2 in flight, wrk", DIRECT, load, GOAL)
        return measure(case, server, direct, pairs, seconds)


def _loop(server: Running, seconds: int) -> Load:
    assert isinstance(server, Looping)
    return server.loop(seconds)


def _direct(subject: Subject, version: Path, rows: int) -> AbstractContextManager[Looping]:
    return looping(DIRECT, "bench.direct", subject.name, str(version), str(rows))


def _server(
    repository: Path, model: str, subject: Subject, rows: int, in_flight: int
) -> AbstractContextManager[Looping]:
    return looping("tritonpy", "bench.in_process", str(repository), model, subject.name, str(rows), str(in_flight))


if __name__ == "__main__":
    sys.exit(main())
