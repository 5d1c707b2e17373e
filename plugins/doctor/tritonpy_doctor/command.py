"""The command `tritonpy doctor`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tritonpy import Command, StartupError, __version__
from tritonpy.config import (
    InvalidServerConfig,
    ServerConfig,
    anchor_paths,
    decode_server_config,
    read_server_yaml,
)
from tritonpy.plugins import make_plugin_manager
from tritonpy_checks import CheckStatus, DoctorContext
from tritonpy_doctor.bundle import write_bundle
from tritonpy_doctor.examination import Section, examine, load_checks

FAILED, USAGE = 1, 2
_MARKS = {
    CheckStatus.OK: ("ok  ", "green"),
    CheckStatus.WARN: ("warn", "bold yellow"),
    CheckStatus.FAIL: ("FAIL", "bold red"),
}


class DoctorCommand(Command):
    """Check the machine, the installation, and what a server.yaml needs.

        tritonpy doctor                          the machine and the installation
        tritonpy doctor --server server.yaml     also the ports, files and services of a server
        tritonpy doctor --bundle report.tar.gz   an archive for a bug report, without secrets

    It changes nothing and ends within five seconds. The exit status is 0, 1 if a check fails, and 2
    for an invalid command line.
    """

    usage_status: ClassVar[int] = USAGE

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--server", type=Path, metavar="FILE", help="check this server.yaml")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument(
            "--network", action="store_true", help="also call repositories and other services"
        )
        parser.add_argument("--bundle", type=Path, metavar="FILE", help="write a .tar.gz")
        parser.add_argument(
            "--check", action="append", metavar="NAME", help="run this check only; repeatable"
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Print the report and return the exit status."""
        try:
            config = _read(arguments.server)
            checks = load_checks(make_plugin_manager(disable=config.plugins.disable))
        except StartupError as error:
            print(f"error: {error}", file=sys.stderr)
            return FAILED if isinstance(error, InvalidServerConfig) else USAGE
        if arguments.check:
            unknown = set(arguments.check) - set(checks)
            if unknown:
                known = ", ".join(checks)
                print(f"error: no check '{min(unknown)}'; there are: {known}", file=sys.stderr)
                return USAGE
            checks = {name: checks[name] for name in checks if name in arguments.check}
        sections = examine(checks, DoctorContext(config, arguments.server, arguments.network))
        report = as_json(sections)
        if arguments.bundle is not None:
            try:
                write_bundle(arguments.bundle, report, arguments.server)
            except OSError as error:
                print(f"error: {arguments.bundle}: {error.strerror}", file=sys.stderr)
                return USAGE
            print(f"wrote {arguments.bundle}", file=sys.stderr)
        if arguments.json:
            print(report)
        else:
            print_text(sections)
        return FAILED if any(each.status is CheckStatus.FAIL for each in sections) else 0


def _read(file: Path | None) -> ServerConfig:
    if file is None:
        return ServerConfig()
    raw, _ = read_server_yaml(file)
    return decode_server_config(anchor_paths(raw, file.parent))


def as_json(sections: Sequence[Section]) -> str:
    """Return one JSON object with the results and the counts."""
    results = [result for section in sections for result in section.results]
    return json.dumps(
        {
            "version": __version__,
            "checks": [
                {
                    "name": section.name,
                    "title": section.title,
                    "status": section.status.value,
                    "results": [
                        {"status": each.status.value, "text": each.text, "fix": each.fix}
                        for each in section.results
                    ],
                }
                for section in sections
            ],
            "counts": {
                status.value: sum(each.status is status for each in results)
                for status in CheckStatus
            },
        },
        indent=2,
    )


def print_text(sections: Sequence[Section]) -> None:
    """Print one line per result, with the remedy of each problem, then a summary."""
    from rich.console import Console  # needed only for a report
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for section in sections:
        console.print(Text(section.title, "bold"))
        for result in section.results:
            mark, style = _MARKS[result.status]
            line = Text("  ")
            line.append(mark, style)
            line.append(f"  {result.text}")
            if result.fix and result.status is CheckStatus.OK:
                line.append(f" ({result.fix})", "dim")
            console.print(line)
            if result.fix and result.status is not CheckStatus.OK:
                console.print(Text(f"        -> {result.fix}", "cyan"))
    results = [result for section in sections for result in section.results]
    failed = sum(each.status is CheckStatus.FAIL for each in results)
    warned = sum(each.status is CheckStatus.WARN for each in results)
    if failed or warned:
        console.print(Text(f"\n{failed} failed, {warned} to look at, {len(results)} results."))
    else:
        console.print(Text(f"\nEverything is ready to serve: {len(results)} results.", "green"))
