"""Shared memory that clients register: the registered regions and the requests that use them.

Start at `regions`; `request_regions` holds them during a request. The package may import `api` and
`types`.
"""

from __future__ import annotations

from tritonpy.shared_memory.regions import Regions
from tritonpy.shared_memory.request_regions import hold_regions

__all__ = ["Regions", "hold_regions"]
