"""The command line."""

from __future__ import annotations

from tritonpy.cli.main import main

__all__ = ["main"]
