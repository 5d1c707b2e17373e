from __future__ import annotations

import torch

from tritonpy import MemoryUsage
from tritonpy_backend_torch.serving.homes import home_of, memory_of


def test_the_home_is_the_first_device_that_is_not_the_host():
    assert home_of([]) is None
    assert home_of([torch.ones(1)]) is None
    assert home_of([torch.ones(1), torch.ones(1, device="meta")]) == torch.device("meta")


def test_memory_that_is_shared_counts_once():
    base = torch.zeros(10)
    assert memory_of([base, base[2:4], torch.zeros(3, dtype=torch.int64)]) == [MemoryUsage("CPU", 0, 64)]
    assert memory_of([]) == []
