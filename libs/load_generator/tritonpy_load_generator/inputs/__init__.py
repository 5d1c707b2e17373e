"""Input tensors of requests: generated, or read from files.

Start at `corpus`.
"""

from __future__ import annotations
