"""JSON Web Tokens.

Start at `authenticator` and `verifier`.
Plugin discovery imports this module only, without the cryptography.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_authenticators() -> Mapping[str, str]:
    """Register the authenticator `jwt`."""
    return {"jwt": "tritonpy_auth_jwt.authenticator:JwtAuthenticator"}
