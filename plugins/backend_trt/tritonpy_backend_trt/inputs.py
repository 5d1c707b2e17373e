"""Inputs of a batch: gathering on the host, and their shapes and values for the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import Batch, Internal, InvalidArgument, Tensor
from tritonpy.execution import gather
from tritonpy_backend_trt.signature import Shape, TensorInfo
from tritonpy_backend_trt.sizes import byte_size

Array = npt.NDArray[Any]
Allocate = Callable[[str, str, tuple[int, ...]], Array]


class InputReader:
    """Reads the batches of one instance.

    `out` allocates pinned memory, or is None to use ordinary memory. With `coalesce`, inputs that
    are adjacent in memory are not copied.
    """

    def __init__(
        self,
        model: str,
        infos: Mapping[str, TensorInfo],
        batched: bool,
        coalesce: bool,
        out: Allocate | None,
    ) -> None:
        self._model = model
        self._infos = infos
        self._batched = batched
        self._coalesce = coalesce
        # Only the requests determine the size of a packed input, so its memory cannot be
        # preallocated.
        self._out = None if any(info.packing for info in infos.values()) else out

    def gather_inputs(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the tensors of all inputs by name, in the engine's order.

        Raises `Internal` if the batch lacks an input.
        """
        tensors = {tensor.name: tensor for tensor in self._gather_tensors(batch)}
        try:
            return {name: tensors[name] for name in self._infos}
        except KeyError as error:
            raise Internal(
                f"failed to obtain the input {error} for model '{self._model}'"
            ) from None

    def shapes(self, batch: Batch, tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
        """Return the shapes of the inputs on the GPU.

        Raises `InvalidArgument` for a packed input whose byte size does not match its shape.
        """
        found = {
            name: tensors[name].shape for name, info in self._infos.items() if not info.is_shape
        }
        for name, info in self._infos.items():
            if info.packing is not None:
                found[name] = self._packed_shape(batch, info, tensors[name])
        return found

    def values(self, batch: Batch, tensors: Mapping[str, Tensor]) -> dict[str, list[int]]:
        """Return the values of the shape tensors, after the batch size if the model batches."""
        rows = [batch.size] if self._batched else []
        return {
            name: rows + tensors[name].numpy().ravel().tolist()
            for name, info in self._infos.items()
            if info.is_shape
        }

    def _gather_tensors(self, batch: Batch) -> Sequence[Tensor]:
        spans = adjacent_views(batch) if self._coalesce else None
        return (
            gather(batch, self._out) if spans is None else [*spans, *batch.controls, *batch.states]
        )

    def _packed_shape(self, batch: Batch, info: TensorInfo, tensor: Tensor) -> Shape:
        like = batch.requests[0].inputs[info.name].shape
        shape = (batch.size, *like[1:]) if self._batched else like
        expected, found = byte_size(info, shape), tensor.data.nbytes
        if found != expected:
            raise InvalidArgument(
                f"input byte size mismatch for input '{info.name}' for model '{self._model}'. "
                f"Expected {expected}, got {found}"
            )
        return shape


def adjacent_views(batch: Batch) -> list[Tensor] | None:
    """Return each input of a batch as one view of the memory of all its requests.

    Returns None if the requests' tensors are not adjacent in memory.
    """
    if batch.slots is not None or batch.model is None or batch.model.layout is not None:
        return None
    spans = []
    for like in batch.requests[0].inputs.values():
        tensors = [request.inputs.get(like.name) for request in batch.requests]
        span = _adjacent_view(like, [None if tensor is None else tensor.data for tensor in tensors])
        if span is None:
            return None
        spans.append(span)
    return spans


def _adjacent_view(like: Tensor, parts: Sequence[Any]) -> Tensor | None:
    end, rows = None, 0
    for part in parts:
        if (
            not isinstance(part, np.ndarray)
            or part.ndim != len(like.shape)
            or not part.ndim
            or end not in {None, address(part)}
        ):
            return None
        end, rows = address(part) + part.nbytes, rows + part.shape[0]
    # Every byte of the view belongs to one of the parts, which live as long as their requests.
    data = np.lib.stride_tricks.as_strided(parts[0], (rows, *like.shape[1:]), writeable=False)
    return Tensor(like.name, like.datatype, data.shape, data)


def address(array: Array) -> int:
    """Return the address of an array's data."""
    return int(array.__array_interface__["data"][0])


def pad(array: Array, shape: Shape) -> Array:
    """Return `array`, zero-padded to `shape` at the end of each dimension if it is smaller."""
    if array.shape == shape:
        return array
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger
