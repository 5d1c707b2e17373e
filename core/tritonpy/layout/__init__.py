"""Layouts of batches whose tensors are not simply stacked rows."""

from __future__ import annotations

from tritonpy.layout.batch_layout import BatchLayout

__all__ = ["BatchLayout"]
