"""The environment in which Envoy finds the interpreter that it embeds, and what that one is to take back."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import find_libpython

from tritonpy import StartupError
from tritonpy_frontend_envoy.handover import CONTROL, InterpreterState


def envoy_environment(control: int) -> dict[str, str]:
    """Return the environment of the Envoy process, whose end of the connection to us is the descriptor `control`. Raises StartupError."""
    preload = "DYLD_INSERT_LIBRARIES" if sys.platform == "darwin" else "LD_PRELOAD"
    already = os.environ.get(preload)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONHOME": f"{sys.prefix}{os.pathsep}{sys.exec_prefix}",
        # the module that Envoy loads is made like any extension: it expects to find the interpreter in its process
        preload: f"{_library()}{os.pathsep}{already}" if already else _library(),
        CONTROL: str(control),
    }


def interpreter_state(environment: Mapping[str, str]) -> InterpreterState:
    """Return what the interpreter inside Envoy must put right, so that it and the processes that it starts are as here."""
    changed = {name: os.environ.get(name) for name, value in environment.items() if os.environ.get(name) != value}
    return InterpreterState(
        environment=changed,
        executable=sys.executable,
        base_executable=getattr(sys, "_base_executable", sys.executable),
        prefix=sys.prefix,
        exec_prefix=sys.exec_prefix,
        base_prefix=sys.base_prefix,
        base_exec_prefix=sys.base_exec_prefix,
        path=sys.path,
        argv=sys.argv,
    )


def _library() -> str:
    found = [
        path
        for path in map(Path, find_libpython.candidate_paths())
        if path.exists() and path.name.startswith("libpython")
    ]
    if not found:
        raise StartupError(
            f"transport 'envoy' needs Python as a shared library, and {sys.executable} has none; "
            "use an interpreter that was built with --enable-shared"
        )
    return str(found[0])
