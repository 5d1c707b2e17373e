"""Unexpected exceptions: the log has everything, the client a number to ask about."""

from __future__ import annotations

import logging
import secrets
from typing import Any

from tritonpy.errors import Internal


def incident(log: logging.Logger | logging.LoggerAdapter[Any], what: str, error: BaseException) -> Internal:
    """Log `error` with its traceback and a new random id, and return an error for the client that names the id alone.

    `what` completes "… failed unexpectedly" in the log: "GET /v2", "an inference". For what a model raises there is its own text instead.
    """
    number = secrets.token_hex(4)
    log.error("incident %s: %s failed unexpectedly", number, what, exc_info=error)
    return Internal(f"unexpected error in the server, see incident {number} in its log")
