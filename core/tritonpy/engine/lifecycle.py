"""The states of the server."""

from __future__ import annotations

import enum


class ServerState(enum.Enum):
    """The server's state.

    Starting and failed servers only respond to health checks. An exiting server finishes the
    requests in flight.
    """

    INITIALIZING = "INITIALIZING"
    READY = "READY"
    EXITING = "EXITING"
