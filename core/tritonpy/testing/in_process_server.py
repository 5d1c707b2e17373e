"""A whole server inside a test."""

from __future__ import annotations

from tritonpy.running import RunningServer, running_server

__all__ = ["RunningServer", "running_server"]
