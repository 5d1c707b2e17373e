"""The engine of this process, `LocalEngine`, and the routers in front of it.

Start at `local`: it finds the model of each request. The package may import models, repositories,
runners and shared memory.
"""

from __future__ import annotations

from tritonpy.engine.local import LocalEngine

__all__ = ["LocalEngine"]
