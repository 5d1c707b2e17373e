"""A complete server inside a test."""

from __future__ import annotations

from tritonpy import RunningServer, running_server

__all__ = ["RunningServer", "running_server"]
