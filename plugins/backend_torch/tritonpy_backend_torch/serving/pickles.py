"""Pickles: what they hold is loaded, code that they bring is run only where the operator allows it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import IO, Any

import torch

from tritonpy import InvalidArgument

REFUSED = (
    "%s is more than tensors: loading it would run code that it brings along. Save a state dict (as .safetensors, or of tensors alone), a TorchScript "
    "model or a program of torch.export instead, or set the model's parameter ALLOW_PICKLES to true if you trust where it came from"
)


def is_harmless(source: IO[bytes]) -> bool:
    """Say whether the pickle holds nothing but tensors and plain containers; raises what PyTorch raises for one that is damaged."""
    if source.seek(0, 2) == 0:
        return True
    source.seek(0)
    try:
        torch.load(source, map_location="meta", weights_only=True)
    except pickle.UnpicklingError:
        return False
    return True


def unpickled(path: Path, device: Any, allowed: bool) -> Any:
    """Return what the file at `path` holds; raises InvalidArgument where that needs code to run and is not `allowed`."""
    if not allowed:
        with path.open("rb") as source:
            if not is_harmless(source):
                raise InvalidArgument(REFUSED % f"'{path}'")
    return torch.load(path, map_location=device, weights_only=not allowed)
