"""The interface of subcommands of the command line."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar


class Command(ABC):
    """The subcommand `tritonpy NAME …`; the first line of the class docstring is its help text."""

    usage_status: ClassVar[int] = 1
    """The exit status for an invalid command line."""
    common_options: ClassVar[Mapping[str, str]] = {}
    """Options that `--help` shows, with a text of one line each.

    If it is empty, `--help` shows every option. Otherwise `--help-all` does.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add arguments to `parser` (optional)."""

    def appendix(self) -> str:
        """Return the last part of the complete help (optional)."""
        return ""

    @abstractmethod
    def run(self, arguments: argparse.Namespace) -> int:
        """Run the subcommand and return its exit status."""
