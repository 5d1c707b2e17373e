"""Whole modules that `torch.save` pickled: only where the operator trusts them."""

from __future__ import annotations

import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.serving.network import Opening
from tritonpy_backend_torch.serving.pickles import unpickled
from tritonpy_backend_torch.serving.python_class import ModuleNetwork


def pickled_network(opening: Opening) -> ModuleNetwork:
    """Return the network of a pickled module; raises InvalidArgument where that is not allowed, or the file holds something else."""
    path = opening.files.path
    module = unpickled(path, opening.device, opening.settings.allow_pickles)
    if not isinstance(module, torch.nn.Module):
        raise InvalidArgument(
            f"'{path}' holds a {type(module).__name__}, not a model; weights need the class that they belong to beside them, as 'model.py'"
        )
    return ModuleNetwork(opening, module)
