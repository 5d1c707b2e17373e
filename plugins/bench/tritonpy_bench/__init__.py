"""The command tritonpy bench: load for any server of the v2 inference protocol, and reports of how it did. Discovery imports this module only."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the command."""
    return {"bench": "tritonpy_bench.command:BenchCommand"}
