"""Tensors as they can travel."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tritonpy.types import CPU, Tensor


def on_host(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return the tensors with their data in host memory; those that lie on another device are copied."""
    return [
        tensor
        if type(tensor.data) is np.ndarray or tensor.device[0] == CPU[0]
        else Tensor.from_numpy(tensor.name, tensor.numpy())
        for tensor in tensors
    ]
