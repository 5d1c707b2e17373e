"""Encrypted and signed models.

Start at `agent` (opens a model when it loads) and `command` (`tritonpy seal`).
Plugin discovery imports this module only.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_repo_agents() -> Mapping[str, str]:
    """Register the repository agent `sealed`."""
    return {"sealed": "tritonpy_agent_sealed.agent:SealedAgent"}


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the command `seal`."""
    return {"seal": "tritonpy_agent_sealed.command:SealCommand"}
