"""What carries the frontends of the servers that tests start as processes.

TRITONPY_TEST_TRANSPORT names a transport, nothing is each frontend's own listener; TRITONPY_TEST_FRONTEND_PROCESSES says how many processes serve them,
nothing is that of the models.
"""

from __future__ import annotations

import os

PROCESSES = os.environ.get("TRITONPY_TEST_FRONTEND_PROCESSES", "")
TRANSPORT = os.environ.get("TRITONPY_TEST_TRANSPORT", "")

BESIDE_PROCESSES = "none" if TRANSPORT in ("", "envoy") else TRANSPORT
"""The transport of servers whose frontends have processes of their own, which Envoy does not go with."""


def transport_flags() -> list[str]:
    """Return the flags that choose it."""
    if PROCESSES:
        return [f"--transport={BESIDE_PROCESSES}", f"--frontend-processes={PROCESSES}"]
    return [f"--transport={TRANSPORT}"] if TRANSPORT else []
