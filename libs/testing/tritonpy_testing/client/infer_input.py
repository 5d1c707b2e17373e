"""Inputs of the client's requests: its own class, and those of tritonclient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tritonpy import DATATYPES, DTYPES, Tensor, encode_strings
from tritonpy.config import datatype_of
from tritonpy.frontend import RegionSlice
from tritonpy_testing.client.exception import InferenceServerException
from tritonpy_testing.client.region_parameters import region_of


class InferInput:
    """One input. `shape` and `datatype` must match the array that is set."""

    def __init__(self, name: str, shape: Sequence[int], datatype: str) -> None:
        self._name = name
        self._shape = list(shape)
        self._datatype = datatype
        self._tensor: Tensor | None = None

    def name(self) -> str:
        """Return the name."""
        return self._name

    def shape(self) -> list[int]:
        """Return the shape."""
        return self._shape

    def datatype(self) -> str:
        """Return the wire name of the data type."""
        return self._datatype

    def set_shape(self, shape: Sequence[int]) -> Self:
        """Change the shape. The data must be set again."""
        self._shape = list(shape)
        self._tensor = None
        return self

    def set_shared_memory(self, region_name: str, byte_size: int, offset: int = 0) -> Self:
        """Let the server read the data from a registered region."""
        part = RegionSlice(region_name, offset, byte_size)
        self._tensor = Tensor(self._name, self._datatype, tuple(self._shape), part)
        return self

    def set_data_from_numpy(self, input_tensor: npt.NDArray[Any], binary_data: bool = True) -> Self:
        """Set the data. `binary_data` exists for compatibility and has no effect.

        Raises InferenceServerException if type or shape differ.
        """
        found = datatype_of(input_tensor.dtype)
        if found != self._datatype:
            raise InferenceServerException(
                f"got unexpected datatype {found} from numpy array, expected {self._datatype}"
            )
        if list(input_tensor.shape) != self._shape:
            raise InferenceServerException(
                f"got unexpected numpy array shape {list(input_tensor.shape)}, "
                f"expected {self._shape}"
            )
        # A copy, as over a network: the caller may reuse the array.
        self._tensor = Tensor.from_numpy(self._name, input_tensor.copy())
        return self

    def tensor(self) -> Tensor:
        """Return the tensor for the server. Raises InferenceServerException if no data is set."""
        if self._tensor is None:
            raise InferenceServerException(
                f"input '{self._name}' has no data: call set_data_from_numpy()"
            )
        return self._tensor


def tensor_of(item: Any) -> Tensor:
    """Return the tensor of an InferInput of this package or of tritonclient (http or grpc)."""
    if isinstance(item, InferInput):
        return item.tensor()
    name, datatype, shape = item.name(), item.datatype(), tuple(int(dim) for dim in item.shape())
    if datatype not in DATATYPES:
        raise InferenceServerException(f"input '{name}' has the unknown datatype '{datatype}'")
    raw = item._get_content() if hasattr(item, "_get_content") else item._get_binary_data()
    if raw is not None:
        return Tensor.from_buffer(name, datatype, shape, raw)
    described: Any = item._get_tensor()
    region = region_of(
        described.get("parameters", {}) if isinstance(described, dict) else described.parameters
    )
    if region is not None:
        return Tensor(name, datatype, shape, region)
    values = described.get("data") if isinstance(described, dict) else None
    if values is None:
        raise InferenceServerException(f"input '{name}' has no data")
    if datatype == "BYTES":
        return Tensor(name, datatype, shape, encode_strings(values))
    return Tensor(name, datatype, shape, np.array(values, DTYPES[datatype]).reshape(shape))
