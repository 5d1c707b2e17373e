"""The inputs of a batch: gathered on the host, and described for the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import Batch, Internal, InvalidArgument, Tensor, gather
from tritonpy_backend_trt.signature import Shape, TensorInfo
from tritonpy_backend_trt.sizes import byte_size

Array = npt.NDArray[Any]
Allocate = Callable[[str, str, tuple[int, ...]], Array]


class InputReader:
    """Reads batches of one instance. `out` gives pinned memory (None: ordinary memory is good enough), `coalesce` says that what lies together stays there."""

    def __init__(
        self, model: str, infos: Mapping[str, TensorInfo], batched: bool, coalesce: bool, out: Allocate | None
    ) -> None:
        self._model = model
        self._infos = infos
        self._batched = batched
        self._coalesce = coalesce
        # How many bytes a packed input has only its requests know: there is no size to ask memory for.
        self._out = None if any(info.packing for info in infos.values()) else out

    def gathered(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the tensors of all inputs by name, in the engine's order; raises Internal where the batch lacks one."""
        tensors = {tensor.name: tensor for tensor in self._together(batch)}
        try:
            return {name: tensors[name] for name in self._infos}
        except KeyError as error:
            raise Internal(f"failed to obtain the input {error} for model '{self._model}'") from None

    def shapes(self, batch: Batch, tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
        """Return the shapes of the inputs on the GPU. Raises InvalidArgument for a packed one that has not as many bytes as its shape takes."""
        found = {name: tensors[name].shape for name, info in self._infos.items() if not info.is_shape}
        for name, info in self._infos.items():
            if info.packing is not None:
                found[name] = self._packed(batch, info, tensors[name])
        return found

    def values(self, batch: Batch, tensors: Mapping[str, Tensor]) -> dict[str, list[int]]:
        """Return the values of the shape tensors, behind the size of the batch where the model batches."""
        rows = [batch.size] if self._batched else []
        return {
            name: rows + tensors[name].numpy().ravel().tolist() for name, info in self._infos.items() if info.is_shape
        }

    def _together(self, batch: Batch) -> Sequence[Tensor]:
        spans = adjacent(batch) if self._coalesce else None
        return gather(batch, self._out) if spans is None else [*spans, *batch.controls, *batch.states]

    def _packed(self, batch: Batch, info: TensorInfo, tensor: Tensor) -> Shape:
        like = batch.requests[0].inputs[info.name].shape
        shape = (batch.size, *like[1:]) if self._batched else like
        expected, found = byte_size(info, shape), tensor.data.nbytes
        if found != expected:
            raise InvalidArgument(
                f"input byte size mismatch for input '{info.name}' for model '{self._model}'. Expected {expected}, got {found}"
            )
        return shape


def adjacent(batch: Batch) -> list[Tensor] | None:
    """Return each input of a batch as one view on the memory of all its requests; None where they do not lie one behind the other."""
    if batch.slots is not None or batch.model is None or batch.model.layout is not None:
        return None
    spans = []
    for like in batch.requests[0].inputs.values():
        tensors = [request.inputs.get(like.name) for request in batch.requests]
        span = _span(like, [None if tensor is None else tensor.data for tensor in tensors])
        if span is None:
            return None
        spans.append(span)
    return spans


def _span(like: Tensor, parts: Sequence[Any]) -> Tensor | None:
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
    """Return where the data of an array lies."""
    return int(array.__array_interface__["data"][0])


def padded(array: Array, shape: Shape) -> Array:
    """Return `array`, or where a graph expects more a copy of that shape with zeros behind the data in each dimension."""
    if array.shape == shape:
        return array
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger
