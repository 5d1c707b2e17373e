"""What the programs that compare servers have in common: their arguments, the loop over the rows, the table at the end."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bench.processes import Running
from bench.rows import Case, Row, line, measure, table

OWN_FLAGS = {"grpcio": ("--transport=grpcio",)}
"""The flags of `tritonpy serve` by transport; the other transports are its defaults."""


def arguments_of(doc: str | None, *, needs: Iterable[str] = ()) -> argparse.Namespace:
    """Read the command line of a program whose text is `doc`; `needs` names the flags without which it measures nothing."""
    return parser_of(doc, needs=needs).parse_args()


def parser_of(doc: str | None, *, needs: Iterable[str] = ()) -> argparse.ArgumentParser:
    """Return the same command line, for a program that has flags of its own beside it."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    for flag, what in (("--triton", "start script of the real Triton"), ("--perf-analyzer", "the real perf_analyzer")):
        parser.add_argument(flag, type=Path, required=flag in needs, help=what)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="length of one run")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    return parser


def add_transport(parser: argparse.ArgumentParser) -> None:
    """Let the command line choose the transport of our server: `flags_of` reads it."""
    parser.add_argument(
        "--transport", choices=("default", *OWN_FLAGS), default="default", help="what our server listens with"
    )


def flags_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return what the chosen transport asks of `tritonpy serve`."""
    return OWN_FLAGS.get(arguments.transport, ())


def run(
    arguments: argparse.Namespace,
    cases: Iterable[Case],
    servers: Mapping[str, Running],
    summary: Callable[[Sequence[Row]], str] | None = None,
) -> int:
    """Measure the chosen rows and print each, then the table and what `summary` says of it; return 1 when one fell short, else 0.

    A row whose servers are not all among `servers` is left out, and that is said.
    """
    rows: list[Row] = []
    for case in cases:
        if arguments.only not in case.name:
            continue
        missing = [name for name in (case.subject, case.other) if name not in servers]
        if missing:
            print(f"{case.name}: left out, it needs {' and '.join(missing)}", flush=True)
            continue
        rows.append(measure(case, servers[case.subject], servers[case.other], arguments.pairs, arguments.seconds))
        print(line(rows[-1]), flush=True)
    print("", table(rows), sep="\n")
    if summary is not None and rows:
        print("", summary(rows), sep="\n")
    return 1 if any(row.verdict.word == "short" for row in rows) else 0
