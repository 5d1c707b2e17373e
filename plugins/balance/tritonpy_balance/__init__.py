"""The command `tritonpy balance`: Envoy in front of several servers, configured and watched.

Plugin discovery imports this module only. Start at `balancer`: it polls `servers`, makes `routes`
and `envoy_config` of what it found, and runs Envoy (`envoy_process`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the command."""
    return {"balance": "tritonpy_balance.command:BalanceCommand"}
