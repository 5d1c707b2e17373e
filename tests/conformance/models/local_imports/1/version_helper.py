"""A module in the folder of the version."""

from __future__ import annotations

VERSION_HELPER = "next to model.py"
