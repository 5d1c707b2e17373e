"""What every form of a model is once it is loaded."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tritonpy_backend_torch.model_files import ModelFiles
from tritonpy_backend_torch.settings import TorchSettings
from tritonpy_backend_torch.signature import Signature


@dataclass(frozen=True, slots=True)
class Opening:
    """What is to be loaded, and where: `device` is a `torch.device`, None leaves every part where the model has it.

    `runners` is how many instances will run the network at the same time.
    """

    model: str
    files: ModelFiles
    settings: TorchSettings
    device: Any
    log: logging.LoggerAdapter[logging.Logger]
    runners: int = 1


class Network(ABC):
    """A loaded model, and its weights. Several threads may run it at the same time where the model itself allows that.

    `home` is the device of its weights, None on the host.
    """

    def __init__(self, signature: Signature, home: Any = None) -> None:
        self.signature = signature
        self.home = home

    @abstractmethod
    def __call__(self, inputs: list[Any]) -> Any:
        """Return what the model makes of `inputs`, a value for each place of its signature, on its device.

        A tensor, a list of texts, several of these in a tuple or list, or in a dictionary by name. `inputs` is the network's from now on.
        """

    def weights(self) -> Iterable[Any]:
        """Return the tensors that stay in memory between executions, as far as PyTorch tells."""
        return ()
