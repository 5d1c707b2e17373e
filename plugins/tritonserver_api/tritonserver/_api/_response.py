"""The classes of responses."""

from __future__ import annotations

from tritonpy_tritonserver_api.response import (
    AsyncResponseIterator,
    InferenceResponse,
    ResponseIterator,
)

__all__ = ["AsyncResponseIterator", "InferenceResponse", "ResponseIterator"]
