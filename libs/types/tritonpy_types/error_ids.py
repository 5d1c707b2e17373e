"""Error ids, which join a client's error to the server's log."""

from __future__ import annotations

import logging
import secrets
from typing import Any

from tritonpy_types.errors import Internal


def internal_error(
    log: logging.Logger | logging.LoggerAdapter[Any], subject: str, error: BaseException
) -> Internal:
    """Log an unexpected exception with a new error id; return an error with only the id.

    The returned error is for the client. `subject` is the subject of "… failed unexpectedly" in the
    log: "GET /v2", "an inference". Do not use it for exceptions of models, whose own text is sent
    to the client.
    """
    number = secrets.token_hex(4)
    log.error("error id %s: %s failed unexpectedly", number, subject, exc_info=error)
    return Internal(f"unexpected error in the server, see error id {number} in its log")
