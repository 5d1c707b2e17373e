"""Checksums of model files. Plugin discovery imports this module only."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_repo_agents() -> Mapping[str, str]:
    """Register the repository agent `checksum`."""
    return {"checksum": "tritonpy_agent_checksum.agent:ChecksumAgent"}
