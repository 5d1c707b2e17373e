"""Client processes that generate the load, and their pool in the measuring process.

Start at `pool` and `worker`.
"""

from __future__ import annotations
