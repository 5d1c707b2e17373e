"""JSON Web Tokens. Discovery imports this module only; the cryptography is loaded with the authenticator itself."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_authenticators() -> Mapping[str, str]:
    """Register the authenticator `jwt`."""
    return {"jwt": "tritonpy_auth_jwt.authenticator:JwtAuthenticator"}
