"""Detection of a model's outputs by running it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from tritonpy_backend_torch.pytorch.dtypes import DATATYPE_NAMES, TORCH_DTYPES
from tritonpy_backend_torch.signature import ANY_ROWS, Signature, TensorInfo, TensorSpec

_SIZES = (2, 3)  # of every dynamic dimension in two runs: output dimensions that differ are dynamic


def probe_outputs(
    signature: Signature, run: Callable[[list[Any]], Sequence[Any]], device: Any
) -> Signature:
    """Return `signature` with types and shapes of the outputs, found by running the model on zeros.

    Returns it unchanged if it is complete, or if the model cannot run on zeros.
    """
    if signature.is_complete or any(spec.info is None for spec in signature.inputs):
        return signature
    try:
        with torch.inference_mode():
            small, large = (run(_zeros(signature.inputs, size, device)) for size in _SIZES)
    except Exception:
        return signature
    infos = [_info(one, other) for one, other in zip(small, large, strict=True)]
    outputs = tuple(
        [replace(spec, info=info) for spec, info in zip(signature.outputs, infos, strict=True)]
    )
    batches = all(
        spec.info is not None and spec.info.dims[:1] == (-1,)
        for spec in (*signature.inputs, *outputs)
    )
    rows = {value.shape[0] for value in small if value.dim()}
    return replace(
        signature, outputs=outputs, max_rows=ANY_ROWS if batches and rows == {_SIZES[0]} else 0
    )


def _zeros(specs: Sequence[TensorSpec], size: int, device: Any) -> list[Any]:
    return [
        torch.zeros(
            [size if dim == -1 else dim for dim in spec.info.dims],
            dtype=TORCH_DTYPES[spec.info.datatype],
            device=device,
        )
        for spec in specs
        if spec.info is not None
    ]


def _info(small: Any, large: Any) -> TensorInfo | None:
    datatype = DATATYPE_NAMES.get(small.dtype)
    if datatype is None or small.dim() != large.dim():
        return None
    return TensorInfo(
        datatype,
        tuple(
            [
                one if one == other else -1
                for one, other in zip(small.shape, large.shape, strict=True)
            ]
        ),
    )
