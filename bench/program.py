"""Shared parts of the comparison programs: command line, loop over the rows, and table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bench.processes import Running
from bench.rows import Case, Row, line, measure, table

OWN_FLAGS = {"grpcio": ("--transport=grpcio",)}
"""The flags of `tritonpy serve` by transport; the other transports are its defaults."""


def arguments_of(doc: str | None, *, needs: Iterable[str] = ()) -> argparse.Namespace:
    """Parse a command line with the description `doc`; flags in `needs` are required."""
    return parser_of(doc, needs=needs).parse_args()


def parser_of(doc: str | None, *, needs: Iterable[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of `arguments_of`, for programs with additional flags."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    for flag, description in (
        ("--triton", "start script of the real Triton"),
        ("--perf-analyzer", "the real perf_analyzer"),
    ):
        parser.add_argument(flag, type=Path, required=flag in needs, help=description)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="length of one run")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    return parser


def add_transport(parser: argparse.ArgumentParser) -> None:
    """Add the flag for the transport of tritonpy's server; `flags_of` reads it."""
    parser.add_argument(
        "--transport",
        choices=("default", *OWN_FLAGS),
        default="default",
        help="transport of tritonpy's server",
    )


def flags_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the flags of `tritonpy serve` for the chosen transport."""
    return OWN_FLAGS.get(arguments.transport, ())


def run(
    arguments: argparse.Namespace,
    cases: Iterable[Case],
    servers: Mapping[str, Running],
    summary: Callable[[Sequence[Row]], str] | None = None,
) -> int:
    """Measure and print the rows, the table and the `summary`; return 1 if a row fell short.

    Rows without their servers are skipped with a message.
    """
    rows: list[Row] = []
    for case in cases:
        if arguments.only not in case.name:
            continue
        missing = [name for name in (case.subject, case.other) if name not in servers]
        if missing:
            print(f"{case.name}: skipped, it needs {' and '.join(missing)}", flush=True)
            continue
        rows.append(
            measure(
                case, servers[case.subject], servers[case.other], arguments.pairs, arguments.seconds
            )
        )
        print(line(rows[-1]), flush=True)
    print("", table(rows), sep="\n")
    if summary is not None and rows:
        print("", summary(rows), sep="\n")
    return 1 if any(row.verdict.word == "short" for row in rows) else 0
