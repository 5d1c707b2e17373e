"""Batches: how tensors of requests are stacked and split, and their layout in memory.

Start at `gather` (stacking and splitting) and `batch_layout` (ragged inputs and batch inputs).
The package may import `tritonpy.api`, `config` and `types`.
"""
