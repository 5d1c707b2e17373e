"""Tensors of the server as tensors of PyTorch and back: both see the same memory, nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tritonpy import CPU, DTYPES, InvalidArgument, Tensor, encode_strings
from tritonpy_backend_torch.serving.dtypes import DATATYPE_NAMES


def borrowed(tensor: Tensor) -> Any:
    """Return a `torch.Tensor` on the memory of `tensor`, wherever that is; texts become a list of `str`.

    Raises InvalidArgument for text that is not UTF-8.
    """
    if tensor.datatype == "BYTES":
        return _texts(tensor)
    data = tensor.data
    if tensor.device != CPU or type(data) is not np.ndarray:
        return torch.from_dlpack(data)
    if tensor.datatype == "BF16":  # numpy does not hand this type to others
        return _of_array(data.view(np.uint16)).view(torch.bfloat16)
    return _of_array(data)


def _of_array(array: Any) -> Any:
    # What arrived from a client is not to be written to, which PyTorch cannot express: `from_numpy` warns of that, DLPack passes it on.
    return torch.from_numpy(array) if array.flags.writeable else torch.from_dlpack(array)


def _texts(tensor: Tensor) -> list[str]:
    try:
        return [text.decode() for text in tensor.strings()]
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            f"input '{tensor.name}' is not UTF-8, which is all that PyTorch takes for text: {error}"
        ) from None


def lent(name: str, value: Any) -> Tensor:
    """Return a tensor on the memory of `value`, a `torch.Tensor` on the host of a type that the protocol has; only what is strided is copied."""
    value = value.contiguous()
    datatype = DATATYPE_NAMES[value.dtype]
    if datatype == "BF16":
        return Tensor(name, datatype, tuple(value.shape), value.view(torch.uint16).numpy().view(DTYPES["BF16"]))
    return Tensor(name, datatype, tuple(value.shape), value.numpy())


def lent_texts(name: str, values: Sequence[str]) -> Tensor:
    """Return the texts as a tensor of one dimension."""
    return Tensor(name, "BYTES", (len(values),), encode_strings([value.encode() for value in values]))
