"""Output files of a benchmark: JSON, CSV and HTML."""

from __future__ import annotations

import argparse
from pathlib import Path

from tritonpy import StartupError
from tritonpy_bench.report.csv_report import write_csv
from tritonpy_bench.report.html import write_html
from tritonpy_bench.report.result import Result, write_json
from tritonpy_load_generator.options import BadUsage


def check_output_paths(arguments: argparse.Namespace) -> None:
    """Raise BadUsage, before the measurement, if a report file cannot be written."""
    for path in _output_paths(arguments):
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise BadUsage(
                f"{path} cannot be written: "
                + ("it is a folder" if path.is_dir() else "its folder does not exist")
            )


def write_reports(arguments: argparse.Namespace, result: Result) -> None:
    """Write all requested reports. Raises StartupError with the files that could not be written."""
    failed = []
    for path, write in (
        (arguments.json, write_json),
        (arguments.csv, write_csv),
        (arguments.html, lambda path, result: write_html(path, [result])),
    ):
        try:
            if path is not None:
                write(path, result)
        except OSError as error:
            failed.append(f"{path} cannot be written: {error}")
    if failed:
        raise StartupError("\n".join(failed))


def _output_paths(arguments: argparse.Namespace) -> list[Path]:
    return [path for path in (arguments.json, arguments.csv, arguments.html) if path is not None]
