"""Statistics loggers."""

from __future__ import annotations


class StatLoggerBase:
    """The interface of statistics loggers."""
