"""The command `tritonpy bench`: a load generator for servers of the v2 inference protocol.

Plugin discovery imports this module only.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the command."""
    return {"bench": "tritonpy_bench.command:BenchCommand"}
