"""The command `tritonpy serve`: Triton's flags, server.yaml, and the life of a server process.

Start at `command`; plugin discovery imports this module only. The package imports public names of
the core.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the commands."""
    return {
        "serve": "tritonpy_serve.command:ServeCommand",
        "healthcheck": "tritonpy_serve.healthcheck:HealthcheckCommand",
    }
