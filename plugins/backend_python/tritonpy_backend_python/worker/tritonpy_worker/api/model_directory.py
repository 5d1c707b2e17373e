"""The folder of the model's files."""

from __future__ import annotations

from .. import host


def get_model_dir() -> str:
    """Return the folder of the model version."""
    return host.current().model_directory
