"""The exception of a model version that takes no more requests."""

from __future__ import annotations


class ModelClosed(Exception):
    """The version was replaced or unloaded after its lookup; look it up again."""
