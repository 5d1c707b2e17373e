"""The interface of a subcommand of the command line."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from typing import ClassVar


class Command(ABC):
    """`tritonpy NAME …`; the class docstring's first line is its help."""

    usage_status: ClassVar[int] = 1
    """The exit status for a command line that cannot be understood."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add arguments (optional)."""

    @abstractmethod
    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; return the exit status."""
