"""Modules pickled by `torch.save`, which load only if pickles are allowed."""

from __future__ import annotations

import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.pytorch.network import LoadSpec
from tritonpy_backend_torch.pytorch.pickles import load_pickle
from tritonpy_backend_torch.pytorch.python_class import ModuleNetwork


def pickled_network(load_spec: LoadSpec) -> ModuleNetwork:
    """Return the network of a pickled module.

    Raises `InvalidArgument` if pickles are not allowed, or if the file contains another object.
    """
    path = load_spec.files.path
    module = load_pickle(path, load_spec.device, load_spec.settings.allow_pickles)
    if not isinstance(module, torch.nn.Module):
        raise InvalidArgument(
            f"'{path}' contains a {type(module).__name__}, not a model; weights need a file with "
            "their class next to them, as 'model.py'"
        )
    return ModuleNetwork(load_spec, module)
