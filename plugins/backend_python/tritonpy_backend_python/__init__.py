"""The backend `python`, which serves Triton's model.py files, and the command `tritonpy debug`.

Start at `backend`. `worker` runs in a model's interpreter, `in_process` in the server.
`worker` imports nothing of tritonpy.
"""

from __future__ import annotations

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> dict[str, str]:
    """Return the backend's class path by its name in configurations."""
    return {"python": "tritonpy_backend_python.backend:PythonBackend"}


@hookimpl
def tritonpy_commands() -> dict[str, str]:
    """Return the class path of the command `tritonpy debug`."""
    return {"debug": "tritonpy_backend_python.debug.command:DebugCommand"}
