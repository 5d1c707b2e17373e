"""A module in the folder of the model."""

from __future__ import annotations

MODEL_HELPER = "next to the versions"
