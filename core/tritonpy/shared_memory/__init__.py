"""Shared memory that clients register: which regions there are, and the requests that use them."""

from __future__ import annotations

from tritonpy.shared_memory.held import hold_regions
from tritonpy.shared_memory.table import Regions

__all__ = ["Regions", "hold_regions"]
