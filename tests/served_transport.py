"""What carries the frontends of the servers that tests start as processes.

TRITONPY_TEST_TRANSPORT names a transport, nothing is each frontend's own listener; TRITONPY_TEST_FRONTEND_PROCESSES says how many processes serve them,
nothing is that of the models.
"""

from __future__ import annotations

import os

PROCESSES = os.environ.get("TRITONPY_TEST_FRONTEND_PROCESSES", "")
TRANSPORT = os.environ.get("TRITONPY_TEST_TRANSPORT", "")


def transport_flags() -> list[str]:
    """Return the flags that choose both."""
    processes = [f"--frontend-processes={PROCESSES}"] if PROCESSES else []
    return [f"--transport={TRANSPORT}", *processes] if TRANSPORT else processes
