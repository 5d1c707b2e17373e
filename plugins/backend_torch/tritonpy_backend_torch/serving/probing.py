"""What a model returns, found by running it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from tritonpy_backend_torch.serving.dtypes import DATATYPE_NAMES, TORCH_DTYPES
from tritonpy_backend_torch.signature import ANY_ROWS, Place, Signature, TensorInfo

_SIZES = (2, 3)  # of every open dimension, in two runs: what differs between them is open too


def with_outputs(signature: Signature, run: Callable[[list[Any]], Sequence[Any]], device: Any) -> Signature:
    """Return `signature` with the types and shapes of the outputs; as it is where it has them, or where the model cannot run on zeros."""
    if signature.is_complete or any(place.info is None for place in signature.inputs):
        return signature
    try:
        with torch.inference_mode():
            small, large = (run(_zeros(signature.inputs, size, device)) for size in _SIZES)
    except Exception:
        return signature
    infos = [_info(one, other) for one, other in zip(small, large, strict=True)]
    outputs = tuple([replace(place, info=info) for place, info in zip(signature.outputs, infos, strict=True)])
    batches = all(place.info is not None and place.info.dims[:1] == (-1,) for place in (*signature.inputs, *outputs))
    rows = {value.shape[0] for value in small if value.dim()}
    return replace(signature, outputs=outputs, most_rows=ANY_ROWS if batches and rows == {_SIZES[0]} else 0)


def _zeros(places: Sequence[Place], size: int, device: Any) -> list[Any]:
    return [
        torch.zeros(
            [size if dim == -1 else dim for dim in place.info.dims],
            dtype=TORCH_DTYPES[place.info.datatype],
            device=device,
        )
        for place in places
        if place.info is not None
    ]


def _info(small: Any, large: Any) -> TensorInfo | None:
    datatype = DATATYPE_NAMES.get(small.dtype)
    if datatype is None or small.dim() != large.dim():
        return None
    return TensorInfo(
        datatype, tuple([one if one == other else -1 for one, other in zip(small.shape, large.shape, strict=True)])
    )
