"""Conversion between tensors of tritonpy and PyTorch that share memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tritonpy import DTYPES, InvalidArgument, Tensor, encode_strings
from tritonpy.execution import CPU
from tritonpy_backend_torch.pytorch.dtypes import DATATYPE_NAMES


def to_torch(tensor: Tensor) -> Any:
    """Return a `torch.Tensor` that shares the memory of `tensor`, or a list of `str` for BYTES.

    Raises `InvalidArgument` for strings that are not UTF-8.
    """
    if tensor.datatype == "BYTES":
        return _texts(tensor)
    data = tensor.data
    if tensor.device != CPU or type(data) is not np.ndarray:
        return torch.from_dlpack(data)
    if tensor.datatype == "BF16":  # numpy does not export this type
        return _of_array(data.view(np.uint16)).view(torch.bfloat16)
    return _of_array(data)


def _of_array(array: Any) -> Any:
    # Memory from clients is read-only, which PyTorch cannot express: `from_numpy` would warn,
    # DLPack does not.
    return torch.from_numpy(array) if array.flags.writeable else torch.from_dlpack(array)


def _texts(tensor: Tensor) -> list[str]:
    try:
        return [text.decode() for text in tensor.strings()]
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            f"input '{tensor.name}' is not UTF-8, the only text encoding that PyTorch accepts: "
            f"{error}"
        ) from None


def from_torch(name: str, value: Any) -> Tensor:
    """Return a tensor that shares the memory of `value`, a host `torch.Tensor` of a supported type.

    Only a strided tensor is copied.
    """
    value = value.contiguous()
    datatype = DATATYPE_NAMES[value.dtype]
    if datatype == "BF16":
        return Tensor(
            name,
            datatype,
            tuple(value.shape),
            value.view(torch.uint16).numpy().view(DTYPES["BF16"]),
        )
    return Tensor(name, datatype, tuple(value.shape), value.numpy())


def from_strings(name: str, values: Sequence[str]) -> Tensor:
    """Return the strings as a one-dimensional tensor."""
    return Tensor(
        name, "BYTES", (len(values),), encode_strings([value.encode() for value in values])
    )
