"""Client processes that generate the load, and their pool in the measuring process."""

from __future__ import annotations
