from __future__ import annotations

import torch

from tritonpy import MemoryUsage
from tritonpy_backend_torch.pytorch.weight_memory import find_weight_device, weight_memory


def test_the_weight_device_is_the_first_that_is_not_the_host():
    assert find_weight_device([]) is None
    assert find_weight_device([torch.ones(1)]) is None
    assert find_weight_device([torch.ones(1), torch.ones(1, device="meta")]) == torch.device("meta")


def test_memory_that_is_shared_counts_once():
    base = torch.zeros(10)
    assert weight_memory([base, base[2:4], torch.zeros(3, dtype=torch.int64)]) == [
        MemoryUsage("CPU", 0, 64)
    ]
    assert weight_memory([]) == []
