"""Transfer of tensors between the host and the device of an instance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from tritonpy import Batch, Tensor
from tritonpy.execution import gather
from tritonpy_backend_torch.pytorch.tensors import to_torch


class DeviceTransfer(ABC):
    """Moves the tensors of one instance; used only by the instance's thread."""

    def context(self) -> AbstractContextManager[Any]:
        """Return the context manager for all PyTorch calls of the instance."""
        return nullcontext()

    def gather_inputs(self, batch: Batch) -> list[Tensor]:
        """Return the batch's inputs, each as one tensor."""
        return gather(batch)

    @abstractmethod
    def to_device(self, tensor: Tensor) -> Any:
        """Return a gathered input on the model's device, without a copy if it is already there."""

    def synchronize(self) -> None:
        """Block until all started work is done."""

    @abstractmethod
    def to_host(self, values: Sequence[Any]) -> list[Any]:
        """Return complete copies of the tensors on the host."""

    def release_cache(self) -> None:
        """Release memory that is cached for later executions."""


class HostTransfer(DeviceTransfer):
    """Keeps tensors on the CPU."""

    def to_device(self, tensor: Tensor) -> Any:
        value = to_torch(tensor)
        return value.cpu() if isinstance(value, torch.Tensor) else value

    def to_host(self, values: Sequence[Any]) -> list[Any]:
        return [value.cpu() for value in values]


class ModelTransfer(DeviceTransfer):
    """For models that place their own parts, possibly on several devices.

    Inputs are passed on the host, or on `weight_device` if the model has one.
    """

    def __init__(self, weight_device: Any) -> None:
        self._weight_device = weight_device

    def to_device(self, tensor: Tensor) -> Any:
        value = to_torch(tensor)
        return value.to(self._weight_device or "cpu") if isinstance(value, torch.Tensor) else value

    def synchronize(self) -> None:
        for device in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
            torch.cuda.synchronize(device)

    def to_host(self, values: Sequence[Any]) -> list[Any]:
        return [value.cpu() for value in values]

    def release_cache(self) -> None:
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
