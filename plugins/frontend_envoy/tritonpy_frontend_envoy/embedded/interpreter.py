"""Makes of the embedded interpreter the one that started Envoy: what it starts and imports is the same then."""

from __future__ import annotations

import os
import sys

from tritonpy_frontend_envoy.handover import InterpreterState


def take_back(state: InterpreterState) -> None:
    """Undo what was changed for Envoy's sake: no process that the server starts may see it."""
    for name, value in state.environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    sys.executable = state.executable
    sys._base_executable = state.base_executable  # type: ignore[attr-defined]  # where venv looks
    sys.prefix, sys.exec_prefix = state.prefix, state.exec_prefix
    sys.base_prefix, sys.base_exec_prefix = state.base_prefix, state.base_exec_prefix
    sys.path[:] = state.path
    sys.argv[:] = state.argv
