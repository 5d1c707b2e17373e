"""The classes of requests."""

from __future__ import annotations

from tritonpy_tritonserver_api.request import InferenceRequest

__all__ = ["InferenceRequest"]
