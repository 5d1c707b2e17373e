"""The command line: `tritonpy COMMAND`.

Start at `main` (commands) and `serve` (the flags of the server). The package may import everything
except runners and models.
"""

from __future__ import annotations

from tritonpy.cli.main import main

__all__ = ["main"]
