"""The interface of a subcommand of the command line."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar


class Command(ABC):
    """`tritonpy NAME …`; the class docstring's first line is its help."""

    usage_status: ClassVar[int] = 1
    """The exit status for a command line that cannot be understood."""
    common_options: ClassVar[Mapping[str, str]] = {}
    """Options that `--help` shows, with a text of one line. Then `--help-all` shows every option; otherwise `--help` does."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add arguments (optional)."""

    @abstractmethod
    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; return the exit status."""
