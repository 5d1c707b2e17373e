"""Initial values of implicit states."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, Internal, InvalidArgument, Tensor
from tritonpy.config import DATATYPE_OF_NUMBER, resolve_model_file
from tritonpy.frontend import string_offsets

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelSequenceBatching

FOLDER = "initial_state"
LENGTH_BYTES = 4  # of an empty string in wire format


def initial_state(state: ModelSequenceBatching.State, batched: bool, directory: Path) -> Tensor:
    """Return the tensor with which a sequence starts. It has one row if the model is `batched`.

    The default is zeros (empty strings for BYTES), with size 1 for variable dimensions. `directory`
    is the model's folder.

    Raises `InvalidArgument` for an invalid setting and `Internal` if a file cannot be read.
    """
    name, datatype = state.input_name, DATATYPE_OF_NUMBER[state.data_type].name
    if not state.initial_state:
        return zeros(
            name, datatype, _shape([1 if dim == -1 else dim for dim in state.dims], batched)
        )
    initial = state.initial_state[0]
    shape = _shape(initial.dims, batched)
    kind = initial.WhichOneof("state_data")
    if kind is None:
        raise InvalidArgument(f"initial_state setting expects state'{name}' to have state_data set")
    if kind == "zero_data":
        return zeros(name, datatype, shape)
    data = _read(directory / FOLDER, initial.data_file)
    if datatype == "BYTES":
        return Tensor(name, datatype, shape, _checked_strings(data, prod(shape), initial.data_file))
    size = prod(shape) * DTYPES[datatype].itemsize
    if size > data.nbytes:
        raise InvalidArgument(
            f"initial_state setting expects {size} bytes, but the data provided from "
            f"{initial.data_file}only has "
            f"{data.nbytes} bytes."
        )
    return Tensor(name, datatype, shape, data[:size].view(DTYPES[datatype]).reshape(shape))


def zeros(name: str, datatype: str, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of zeros, or of empty strings for BYTES."""
    if datatype == "BYTES":
        return Tensor(name, datatype, shape, np.zeros(LENGTH_BYTES * prod(shape), np.uint8))
    return Tensor(name, datatype, shape, np.zeros(shape, DTYPES[datatype]))


def _shape(dims: Sequence[int], batched: bool) -> tuple[int, ...]:
    return (1, *dims) if batched else tuple(dims)


def _read(folder: Path, filename: str) -> npt.NDArray[np.uint8]:
    path = resolve_model_file(filename, folder, folder.parent)
    try:
        return np.frombuffer(path.read_bytes(), np.uint8)
    except OSError as error:
        raise Internal(f"failed to open text file for read {path}: {error.strerror}") from error


def _checked_strings(
    data: npt.NDArray[np.uint8], count: int, filename: str
) -> npt.NDArray[np.uint8]:
    found = len(string_offsets(data)) - 1
    if found != count:
        raise InvalidArgument(
            f"initial_state setting expects {count} strings, {filename} has {found}"
        )
    return data
