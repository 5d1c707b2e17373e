"""The command `tritonpy lint`."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from tritonpy import Command, StartupError
from tritonpy.config import parse_byte_size
from tritonpy_checks import Level, Machine
from tritonpy_checks.machine import this_machine
from tritonpy_lint.fixing import apply, diff, plan_fixes
from tritonpy_lint.linting import LintOptions, LintResult, lint
from tritonpy_lint.reports import FORMATS, print_text

FOUND, USAGE = 1, 2
_FAIL_ON = {
    "error": (Level.ERROR,),
    "warning": (Level.ERROR, Level.WARNING),
    "advice": tuple(Level),
}
_MAX_PASSES = 10
_QUIET_S = 2.0


class LintCommand(Command):
    """Find mistakes in model repositories and server.yaml, without loading a model.

        tritonpy lint models                  a repository, a model or a config.pbtxt
        tritonpy lint --server server.yaml    the repositories of a server, and its options
        tritonpy lint models --fix            correct what can be corrected safely

    Errors are what the server would refuse to load. The exit status is 0 without findings at
    --fail-on (default: error), 1 with such findings, and 2 for an invalid command line.
    """

    usage_status: ClassVar[int] = USAGE

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument(
            "paths", nargs="*", metavar="PATH", help="repository, model, or URL (default: models)"
        )
        add = parser.add_argument
        add("--server", type=Path, metavar="FILE", help="a server.yaml to check and to use")
        add("--fix", action="store_true", help="apply safe fixes; comments and layout stay")
        add("--unsafe-fixes", action="store_true", help="with --fix: also apply fixes to confirm")
        add("--diff", action="store_true", help="show the fixes as a diff, change nothing")
        add("--format", choices=("text", *FORMATS), default="text", help="output (default: text)")
        add("--json", action="store_true", help="the same as --format json")
        add("--select", metavar="CODES", help="only these codes, such as S,D002")
        add("--ignore", metavar="CODES", help="leave out these codes")
        add("--fail-on", choices=_FAIL_ON, default="error", help="exit 1 from this level on")
        add("--config-name", default="", metavar="NAME", help="use configs/NAME.pbtxt")
        add("--no-model-files", action="store_true", help="do not open model files")
        add("--gpus", type=int, metavar="N", help="check for a machine with N GPUs")
        add("--cores", type=int, metavar="N", help="check for a machine with N cores")
        add("--memory", metavar="SIZE", help="check for a machine with this memory, such as 8GiB")

    def run(self, arguments: argparse.Namespace) -> int:
        """Print the findings and return the exit status."""
        try:
            return self._run(arguments)
        except StartupError as error:
            print(f"error: {error}", file=sys.stderr)
            return USAGE

    def _run(self, arguments: argparse.Namespace) -> int:
        options = self._options(arguments)
        result = lint(options)
        if arguments.diff:
            sys.stdout.writelines(diff(plan_fixes(result.findings, unsafe=arguments.unsafe_fixes)))
            return self._status(result, arguments)
        if arguments.fix:
            result = self._fixed(result, options, arguments.unsafe_fixes)
        name = "json" if arguments.json else arguments.format
        if name == "text":
            print_text(result)
        else:
            print(FORMATS[name](result))
        return self._status(result, arguments)

    def _options(self, arguments: argparse.Namespace) -> LintOptions:
        yaml = [path for path in arguments.paths if path.endswith((".yaml", ".yml"))]
        paths = [path for path in arguments.paths if path not in yaml]
        server = arguments.server or (Path(yaml[0]) if yaml else None)
        return LintOptions(
            paths=paths,
            server=server,
            select=_codes(arguments.select),
            ignore=_codes(arguments.ignore),
            machine=_machine(arguments),
            model_files=not arguments.no_model_files,
            config_name=arguments.config_name,
            progress=_Progress().show,
        )

    def _fixed(self, result: LintResult, options: LintOptions, unsafe: bool) -> LintResult:
        """Apply fixes until none is left, and return the last result."""
        count = 0
        for _ in range(_MAX_PASSES):
            plan = plan_fixes(result.findings, unsafe=unsafe)
            if not plan.fixes:
                break
            apply(plan)
            count += len(plan.fixes)
            result = lint(options)
        if count:
            print(f"applied {count} fix{'es' if count != 1 else ''}", file=sys.stderr)
        return result

    def _status(self, result: LintResult, arguments: argparse.Namespace) -> int:
        return FOUND if any(result.count(level) for level in _FAIL_ON[arguments.fail_on]) else 0


def _codes(text: str | None) -> list[str]:
    return [code.strip() for code in (text or "").split(",") if code.strip()]


def _machine(arguments: argparse.Namespace) -> Machine:
    machine = this_machine()
    if arguments.gpus is not None:
        machine = replace(machine, gpus=tuple(range(arguments.gpus)))
    if arguments.cores is not None:
        machine = replace(machine, cores=arguments.cores)
    if arguments.memory is not None:
        try:
            machine = replace(machine, memory=parse_byte_size(arguments.memory))
        except ValueError as error:
            raise StartupError(f"--memory: {error}") from error
    return machine


class _Progress:
    """Shows on a terminal what lint does, from two seconds on."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Replace the line of progress."""
        if self._terminal and time.monotonic() - self._start > _QUIET_S:
            print(f"\r\033[K{text}", end="\r", file=sys.stderr, flush=True)
