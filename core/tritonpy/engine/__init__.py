"""The engine of this process: `LocalEngine`."""

from __future__ import annotations

from tritonpy.engine.local import LocalEngine

__all__ = ["LocalEngine"]
