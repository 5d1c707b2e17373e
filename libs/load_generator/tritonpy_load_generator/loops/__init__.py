"""Load generation: closed and open loops, arrival times, and sequences.

Start at `closed_loop` and `open_loop`.
"""

from __future__ import annotations
