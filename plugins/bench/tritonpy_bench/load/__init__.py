"""When requests start: closed and open loops, arrivals, sequences."""

from __future__ import annotations
