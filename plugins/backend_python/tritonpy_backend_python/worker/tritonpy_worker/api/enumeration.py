"""Enumerations that look as Triton's do."""

from __future__ import annotations

from enum import IntEnum


class Enumeration(IntEnum):
    """A constant that is equal to its number and prints with its kind."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"
