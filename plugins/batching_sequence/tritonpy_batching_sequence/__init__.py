"""Sequence batching for tritonpy: requests of one sequence run in order, on one instance."""

from __future__ import annotations
