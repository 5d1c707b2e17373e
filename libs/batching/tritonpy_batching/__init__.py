"""Batches: how tensors of requests are stacked and split, and their layout in memory.

Start at `gather` (stacking and splitting) and `batch_layout` (ragged inputs and batch inputs). The
library imports `tritonpy_types`, `tritonpy_ipc` and `tritonpy_protos` only.
"""
