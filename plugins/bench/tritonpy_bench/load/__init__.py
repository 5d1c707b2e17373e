"""Load generation: closed and open loops, arrival times, and sequences."""

from __future__ import annotations
