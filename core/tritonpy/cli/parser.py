"""An argparse parser that suggests the closest flag instead of printing its usage."""

from __future__ import annotations

import argparse
import copy
import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from tritonpy.errors import StartupError


class UsageError(StartupError):
    """The command line is invalid."""


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError with the closest flag where argparse exits with status 2.

    `appendix()` returns the last part of the complete help. `common` maps options to short help
    texts: with it, `--help` shows only these and the positional arguments, and `--help-all` shows
    everything.
    """

    def __init__(
        self,
        prog: str,
        description: str = "",
        appendix: Callable[[], str] = str,
        common: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=_formatter)
        self._appendix = appendix
        self._common = common or {}
        if self._common:
            self.add_argument("--help-all", action=_HelpAll, help="show every option and exit")

    def format_help(self) -> str:
        """Return the output of `--help`."""
        return self._format_common() if self._common else self.format_help_all()

    def format_help_all(self) -> str:
        """Return the help of every option, with the appendix."""
        return f"{super().format_help()}\n{self._appendix()}".rstrip() + "\n"

    def _format_common(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for group in self._action_groups:
            formatter.start_section(group.title)
            for action in group._group_actions:
                texts = [self._common[option] for option in action.option_strings if option in self._common]
                if texts:
                    formatter.add_argument(_with_help(action, texts[0]))
                elif not action.option_strings or isinstance(action, (argparse._HelpAction, _HelpAll)):
                    formatter.add_argument(action)
            formatter.end_section()
        return formatter.format_help()

    def parse_args(self, args: list[str] | None = None, namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """Return the arguments. Raises UsageError that names every unknown flag and argument."""
        arguments, unknown = self.parse_known_args(args, namespace)
        if unknown:
            raise UsageError("\n".join(self._unknown(text) for text in unknown))
        return arguments

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message} (see {self.prog} --help)")

    def _unknown(self, text: str) -> str:
        name = text.partition("=")[0]
        if not name.startswith("-"):
            return f"Unexpected argument: {text} (see {self.prog} --help)"
        flags = [option for action in self._actions for option in action.option_strings]
        near = difflib.get_close_matches(name.replace("_", "-"), flags, 1)
        where = "--help-all" if self._common else "--help"
        return f"unrecognized option '{name}'" + (
            f"; did you mean '{near[0]}'?" if near else f" (see {self.prog} {where})"
        )


class _HelpAll(argparse.Action):
    """The option that prints the help of every option and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: Any) -> None:
        if isinstance(parser, CommandParser):
            sys.stdout.write(parser.format_help_all())
        parser.exit()


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=32)


def _with_help(action: argparse.Action, text: str) -> argparse.Action:
    changed = copy.copy(action)
    changed.help = text.replace("%", "%%")
    return changed
