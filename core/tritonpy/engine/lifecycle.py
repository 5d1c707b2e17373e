"""The states of the server as a whole."""

from __future__ import annotations

import enum


class ServerState(enum.Enum):
    """Starting and failed servers answer nothing but health; an exiting one finishes what it has."""

    INITIALIZING = "INITIALIZING"
    READY = "READY"
    EXITING = "EXITING"
