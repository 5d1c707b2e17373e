"""Redaction of URLs for logs, errors and clients."""

from __future__ import annotations

import re

_PASSWORD = re.compile(r"(?<=//)([^/@:\s]*):[^/\s]*@")
_QUERY = re.compile(r"(://[^\s?]*\?)[^\s'\")]*")


def redact_urls(text: str) -> str:
    """Return `text` with the passwords and queries of its URLs redacted.

    Queries may contain signatures and tokens.
    """
    return _PASSWORD.sub(r"\1:***@", _QUERY.sub(r"\1***", text))
