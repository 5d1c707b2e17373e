"""State dicts in safetensors files (one or several) or written by `torch.save`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from tritonpy import InvalidArgument
from tritonpy.config import resolve_model_file
from tritonpy_backend_torch.pytorch.pickles import load_pickle


def state_dict(path: Path, device: Any, allow_pickles: bool) -> Mapping[str, Any]:
    """Return the tensors by name in the file at `path`, on `device`.

    Raises `InvalidArgument` if the file cannot be read or is not a state dict.
    """
    try:
        found = _read(path, device, allow_pickles)
    except InvalidArgument:
        raise
    except Exception as error:
        raise InvalidArgument(f"the weights in '{path}' cannot be read: {error}") from error
    if not isinstance(found, Mapping):
        raise InvalidArgument(
            f"'{path}' contains a {type(found).__name__}, not a state dict (tensors by name)"
        )
    return found


def _read(path: Path, device: Any, allow_pickles: bool) -> Any:
    where = str(device or "cpu")
    if path.suffix == ".json":
        shards = sorted(set(json.loads(path.read_bytes())["weight_map"].values()))
        files = [resolve_model_file(shard, path.parent, path.parent) for shard in shards]
        return {
            name: tensor for file in files for name, tensor in load_file(file, device=where).items()
        }
    if path.suffix == ".safetensors":
        return load_file(path, device=where)
    return load_pickle(path, device, allow_pickles)
