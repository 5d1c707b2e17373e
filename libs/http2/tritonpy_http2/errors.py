"""Errors that end a connection."""

from __future__ import annotations


class Http2ConnectionError(Exception):
    """A connection error (RFC 9113, section 5.4.1), sent as GOAWAY with `code` and `text`."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
