"""The backend `python`: serves model.py files written for Triton, each instance in a process of its own; and the command that debugs one."""

from __future__ import annotations

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> dict[str, str]:
    """Register the backend under the name that configurations give."""
    return {"python": "tritonpy_backend_python.backend:PythonBackend"}


@hookimpl
def tritonpy_commands() -> dict[str, str]:
    """Register `tritonpy debug`."""
    return {"debug": "tritonpy_backend_python.debug.command:DebugCommand"}
