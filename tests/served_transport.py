"""The transport of the servers that tests start as processes.

TRITONPY_TEST_TRANSPORT names a transport; the default is each frontend's own listener.
TRITONPY_TEST_FRONTEND_PROCESSES is the number of frontend processes; by default the process of the
models serves.
"""

from __future__ import annotations

import os

PROCESSES = os.environ.get("TRITONPY_TEST_FRONTEND_PROCESSES", "")
TRANSPORT = os.environ.get("TRITONPY_TEST_TRANSPORT", "")


def transport_flags() -> list[str]:
    """Return the flags that select transport and frontend processes."""
    processes = [f"--frontend-processes={PROCESSES}"] if PROCESSES else []
    return [f"--transport={TRANSPORT}", *processes] if TRANSPORT else processes
