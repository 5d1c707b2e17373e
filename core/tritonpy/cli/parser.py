"""An argparse parser that says what was meant instead of printing its usage."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable
from typing import NoReturn

from tritonpy.errors import StartupError


class UsageError(StartupError):
    """The command line cannot be understood."""


class CommandParser(argparse.ArgumentParser):
    """Raises UsageError with the nearest flag where argparse would exit with status 2. `appendix()` ends the help."""

    def __init__(self, prog: str, description: str = "", appendix: Callable[[], str] = str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._appendix = appendix

    def format_help(self) -> str:
        """Return the help with the appendix."""
        return f"{super().format_help()}\n{self._appendix()}".rstrip() + "\n"

    def parse_args(self, args: list[str] | None = None, namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """Return the arguments; raises UsageError naming every flag and argument that is not known."""
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
        return f"unrecognized option '{name}'" + (
            f"; did you mean '{near[0]}'?" if near else f" (see {self.prog} --help)"
        )
