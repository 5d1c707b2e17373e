"""Batches whose tensors are not simply rows below rows."""

from __future__ import annotations

from tritonpy.layout.batch_layout import BatchLayout

__all__ = ["BatchLayout"]
