"""The command line: `tritonpy COMMAND`."""

from __future__ import annotations

from tritonpy.cli.main import main

__all__ = ["main"]
