"""What a client did that ends its connection."""

from __future__ import annotations


class ConnectionFault(Exception):
    """The connection has to end with a GOAWAY of `code` and `text`."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
