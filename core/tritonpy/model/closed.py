"""What a version says that serves no longer."""

from __future__ import annotations


class ModelClosed(Exception):
    """The version was replaced or unloaded between its look-up and the request; look it up again."""
