"""API keys.

Start at `authenticator`; `command` makes keys.
Plugin discovery imports this module only.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_authenticators() -> Mapping[str, str]:
    """Register the authenticator `api_keys`."""
    return {"api_keys": "tritonpy_auth_api_keys.authenticator:ApiKeys"}


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the command `api-key`."""
    return {"api-key": "tritonpy_auth_api_keys.command:ApiKeyCommand"}
