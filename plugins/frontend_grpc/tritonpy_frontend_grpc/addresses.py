"""Reservation and formatting of addresses."""

from __future__ import annotations

from tritonpy import StartupError
from tritonpy.frontend import ClaimedAddress, claim_port


def claim_address(host: str, port: int, *, reuse: bool) -> ClaimedAddress:
    """Reserve a port (0: any free one) for several processes. Raises StartupError."""
    try:
        return claim_port(host, port, reuse=reuse)
    except OSError as error:
        raise listen_error(format_host(host), port, error) from error


def format_host(host: str) -> str:
    """Return a host as part of an address, with brackets around IPv6."""
    return f"[{host}]" if ":" in host else host


def listen_error(name: str, port: int, error: Exception) -> StartupError:
    """Return the error for an address that is unavailable."""
    reason = getattr(error, "strerror", None) or error
    return StartupError(
        f"the gRPC frontend cannot listen on {name}:{port}: {reason}. "
        "Stop the process that listens there, or choose another `port` or `host` under "
        "`frontends: grpc:`"
    )
