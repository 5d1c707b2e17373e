"""A module for relative imports."""

from __future__ import annotations

NAME = f"relative {__name__}"
