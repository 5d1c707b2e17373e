"""Where an instance computes, and how tensors get there and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from tritonpy import Batch, Tensor, gather
from tritonpy_backend_torch.serving.tensors import borrowed


class Lane(ABC):
    """The way of an instance's tensors. Used by the instance's thread alone."""

    def current(self) -> AbstractContextManager[Any]:
        """Return the context for all that the instance does with PyTorch."""
        return nullcontext()

    def gathered(self, batch: Batch) -> list[Tensor]:
        """Return the batch's inputs, each as one tensor."""
        return gather(batch)

    @abstractmethod
    def placed(self, tensor: Tensor) -> Any:
        """Return a gathered input as the model takes it; where nothing has to move, it is on the memory of `tensor`."""

    def settle(self) -> None:
        """Wait until what was begun is computed."""

    @abstractmethod
    def fetched(self, values: Sequence[Any]) -> list[Any]:
        """Return the tensors on the host, complete."""

    def clean(self) -> None:
        """Give memory back that is kept for later executions."""


class HostLane(Lane):
    """On the processor: nothing moves."""

    def placed(self, tensor: Tensor) -> Any:
        value = borrowed(tensor)
        return value.cpu() if isinstance(value, torch.Tensor) else value

    def fetched(self, values: Sequence[Any]) -> list[Any]:
        return [value.cpu() for value in values]


class ModelLane(Lane):
    """Wherever the model's parts are, which may be several devices: inputs are given on the host, or at `home` where the model says one."""

    def __init__(self, home: Any) -> None:
        self._home = home

    def placed(self, tensor: Tensor) -> Any:
        value = borrowed(tensor)
        return value.to(self._home or "cpu") if isinstance(value, torch.Tensor) else value

    def settle(self) -> None:
        for device in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
            torch.cuda.synchronize(device)

    def fetched(self, values: Sequence[Any]) -> list[Any]:
        return [value.cpu() for value in values]

    def clean(self) -> None:
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
