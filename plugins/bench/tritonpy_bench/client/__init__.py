"""The processes that make the load, and what they tell the one that measures."""

from __future__ import annotations
