"""What the programs that compare servers have in common: their arguments, the loop over the rows, the table at the end."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.processes import Running
from bench.rows import Case, Row, line, measure, table


def arguments_of(doc: str | None, *, needs: Iterable[str] = ()) -> argparse.Namespace:
    """Read the command line of a program whose text is `doc`; `needs` names the flags without which it measures nothing."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    for flag, what in (("--triton", "start script of the real Triton"), ("--perf-analyzer", "the real perf_analyzer")):
        parser.add_argument(flag, type=Path, required=flag in needs, help=what)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="length of one run")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    return parser.parse_args()


def run(arguments: argparse.Namespace, cases: Iterable[Case], subject: Running, others: Mapping[str, Running]) -> int:
    """Measure the chosen rows and print each, then the table; return 1 when one fell short, else 0."""
    rows: list[Row] = []
    for case in cases:
        if arguments.only not in case.name:
            continue
        if case.other not in others:
            print(f"{case.name}: left out, it needs {case.other}", flush=True)
            continue
        rows.append(measure(case, subject, others[case.other], arguments.pairs, arguments.seconds))
        print(line(rows[-1]), flush=True)
    print("", table(rows), sep="\n")
    return 1 if any(row.verdict.word == "short" for row in rows) else 0
