"""Found in the folder of the model."""

from __future__ import annotations

MODEL_HELPER = "beside the versions"
