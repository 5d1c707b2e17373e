"""Modules that programs import by their private names in NVIDIA's package."""

from __future__ import annotations

from tritonserver._api import _model, _request, _response, _server, _tensor

__all__ = ["_model", "_request", "_response", "_server", "_tensor"]
