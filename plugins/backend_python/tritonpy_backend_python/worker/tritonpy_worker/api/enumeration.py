"""Enumerations that print like Triton's."""

from __future__ import annotations

from enum import IntEnum


class Enumeration(IntEnum):
    """A constant that equals its number and prints with its class."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"
