"""Addresses of the frontend as they are claimed, and named where they cannot be had."""

from __future__ import annotations

from tritonpy import Claimed, StartupError, claim_port


def claim_address(host: str, port: int, *, reuse: bool) -> Claimed:
    """Take a port, 0 for a free one, for several processes that will listen on it. Raises StartupError."""
    try:
        return claim_port(host, port, reuse=reuse)
    except OSError as error:
        raise taken(name_of(host), port, error) from error


def name_of(host: str) -> str:
    """Return a host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def taken(name: str, port: int, error: Exception) -> StartupError:
    """Return what says that an address cannot be had."""
    reason = getattr(error, "strerror", None) or error
    return StartupError(
        f"the gRPC frontend cannot listen on {name}:{port}: {reason}. "
        "Stop what listens there, or choose another `port` or `host` under `frontends: grpc:`"
    )
