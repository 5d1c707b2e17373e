"""Found relatively to the model."""

from __future__ import annotations

NAME = f"relative {__name__}"
