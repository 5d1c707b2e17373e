"""URLs as logs, errors and clients may see them."""

from __future__ import annotations

import re

_PASSWORD = re.compile(r"(?<=//)([^/@:\s]*):[^/\s]*@")
_QUERY = re.compile(r"(://[^\s?]*\?)[^\s'\")]*")


def without_secrets(text: str) -> str:
    """Return a text without the passwords of the URLs in it, and without their queries: signatures and tokens stand there."""
    return _PASSWORD.sub(r"\1:***@", _QUERY.sub(r"\1***", text))
