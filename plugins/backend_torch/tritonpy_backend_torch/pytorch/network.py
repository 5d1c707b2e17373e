"""Interface of a loaded model of any format."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tritonpy_backend_torch.model_files import ModelFiles
from tritonpy_backend_torch.settings import ModelSettings
from tritonpy_backend_torch.signature import Signature


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """What to load, and where.

    `device` is a `torch.device`, or None to leave every part where the model places it. `runners`
    is the number of instances that run the network concurrently.
    """

    model: str
    files: ModelFiles
    settings: ModelSettings
    device: Any
    log: logging.LoggerAdapter[logging.Logger]
    runners: int = 1


class Network(ABC):
    """A loaded model with its weights.

    Threads may run it concurrently if the model supports that. `weight_device` is the device of its
    weights, or None for the host.
    """

    def __init__(self, signature: Signature, weight_device: Any = None) -> None:
        self.signature = signature
        self.weight_device = weight_device

    @abstractmethod
    def __call__(self, inputs: list[Any]) -> Any:
        """Return the model's result for `inputs`, one value for each input of its signature.

        The result is a tensor, a list of strings, a tuple or list of these, or a dictionary of
        these by name. Tensors are on the model's device. The network may modify the list `inputs`.
        """

    def weights(self) -> Iterable[Any]:
        """Return the tensors that stay in memory between executions, if PyTorch reports them."""
        return ()
