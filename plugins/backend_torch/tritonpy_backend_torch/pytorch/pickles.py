"""Loading of pickles; code in them runs only if the operator allows it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import IO, Any

import torch

from tritonpy import InvalidArgument

REFUSAL = (
    "%s contains more than tensors: loading it would execute code. Save a state dict (as "
    ".safetensors, or with tensors only), a TorchScript "
    "model or a torch.export program instead, or set the model's parameter ALLOW_PICKLES to true "
    "if you trust its source"
)


def is_harmless(source: IO[bytes]) -> bool:
    """Return whether the pickle contains only tensors and plain containers.

    Raises PyTorch's exceptions for a damaged pickle.
    """
    if source.seek(0, 2) == 0:
        return True
    source.seek(0)
    try:
        torch.load(source, map_location="meta", weights_only=True)
    except pickle.UnpicklingError:
        return False
    return True


def load_pickle(path: Path, device: Any, allowed: bool) -> Any:
    """Return the content of the file at `path`.

    Raises `InvalidArgument` if loading would execute code and that is not `allowed`.
    """
    if not allowed:
        with path.open("rb") as source:
            if not is_harmless(source):
                raise InvalidArgument(REFUSAL % f"'{path}'")
    return torch.load(path, map_location=device, weights_only=not allowed)
