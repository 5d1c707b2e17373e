"""Measured values: histograms, snapshots, stability, and the server's statistics.

Start at `snapshot`.
"""

from __future__ import annotations
