"""The command `tritonpy diff`: what a load would change in a running server."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from tritonpy import Command, StartupError
from tritonpy_lint.linting import LintOptions, lint
from tritonpy_lint.repository_diff import Action, ModelChange, ServerReader, compare, summary

FAILED, CHANGES = 1, 2
_MARKS = {
    Action.ADD: ("+", "green"),
    Action.CHANGE: ("~", "yellow"),
    Action.UPDATE: ("~", "cyan"),
    Action.REMOVE: ("-", "red"),
}


class DiffCommand(Command):
    """Show what a load of a repository would change in a running server.

        tritonpy diff models                        the server at localhost:8000
        tritonpy diff models --server HOST:8000     another server

    Nothing is changed. The exit status is 0 without changes, 2 with changes, and 1 if the server
    cannot be reached or the command line is invalid.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        add = parser.add_argument
        add("paths", nargs="*", metavar="PATH", help="repositories (default: models)")
        add("--server", default="localhost:8000", metavar="URL", help="default: localhost:8000")
        add("-H", "--header", action="append", default=[], metavar="NAME:VALUE", help="repeatable")
        add("--json", action="store_true", help="print JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        """Print the changes and return the exit status."""
        headers = {}
        for text in arguments.header:
            name, colon, value = text.partition(":")
            if not colon:
                print(f"error: --header {text}: write NAME:VALUE", file=sys.stderr)
                return FAILED
            headers[name.strip()] = value.strip()
        try:
            result = lint(LintOptions(paths=arguments.paths))
            served = ServerReader(arguments.server, headers).models()
        except StartupError as error:
            print(f"error: {error}", file=sys.stderr)
            return FAILED
        changes = compare({model.name: model for model in result.models}, served)
        if arguments.json:
            print(json.dumps([_plain(each) for each in changes], indent=2))
        else:
            _print(changes)
        return CHANGES if any(each.action is not Action.NONE for each in changes) else 0


def _plain(change: ModelChange) -> dict[str, object]:
    return {**dataclasses.asdict(change), "action": change.action.value}


def _print(changes: list[ModelChange]) -> None:
    from rich.console import Console  # needed only for a report
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for change in changes:
        mark, style = _MARKS.get(change.action, (" ", "dim"))
        if change.action is Action.NONE and not change.details:
            continue
        console.print(Text(f"{mark} {change.name} ({change.action.value})", style))
        for detail in change.details:
            console.print(Text(f"    {detail}"))
        if change.dependents:
            console.print(Text(f"    rebuilds {', '.join(change.dependents)}"))
    console.print(Text(summary(changes)))
