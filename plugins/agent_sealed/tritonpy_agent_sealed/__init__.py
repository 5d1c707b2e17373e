"""Encrypted and signed models. Discovery imports this module only."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_repo_agents() -> Mapping[str, str]:
    """Register the agent `sealed`."""
    return {"sealed": "tritonpy_agent_sealed.agent:SealedAgent"}


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the command that makes keys and sealed models."""
    return {"seal": "tritonpy_agent_sealed.command:SealCommand"}
