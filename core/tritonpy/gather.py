"""Requests -> one batch of arrays -> one response per request. Pure; the only copy of the inputs is made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy.errors import Internal
from tritonpy.types import DTYPES, Batch, InferRequest, InferResponse, Tensor, datatype_of

if TYPE_CHECKING:
    from tritonpy.api.backend import ModelContext

Array = npt.NDArray[Any]
Allocate = Callable[[str, str, tuple[int, ...]], Array]


def gather(batch: Batch, out: Allocate | None = None) -> list[Tensor]:
    """Return the inputs of `batch`, each as one tensor with the requests along the first dimension.

    A single request is passed on as it is, without a copy. A slot without data becomes rows of zeros (empty
    strings for BYTES). Controls, states and batch inputs of the scheduler follow the inputs. `out(name, datatype, shape)` may give
    the memory to write to (shared, pinned); it is not asked for BYTES.
    """
    slots: Sequence[InferRequest | None] = batch.requests if batch.slots is None else batch.slots
    first = batch.requests[0]
    alone = len(slots) == 1 and out is None
    tensors = [
        first.inputs[name] if alone else _concatenate(name, slots, first.inputs[name], out) for name in first.inputs
    ]
    if batch.controls or batch.states or batch.batch_inputs:
        tensors.extend((*batch.controls, *batch.states, *batch.batch_inputs))
    return tensors


def _concatenate(name: str, slots: Sequence[InferRequest | None], like: Tensor, out: Allocate | None) -> Tensor:
    if like.datatype == "BYTES":
        parts = [_empty_strings(like) if slot is None else slot.inputs[name].data for slot in slots]
    else:
        parts = [_zeros(like) if slot is None else _host(slot.inputs[name]) for slot in slots]
    rows = sum([_rows(like) if slot is None else slot.inputs[name].shape[0] for slot in slots])
    shape = (rows, *like.shape[1:])
    if out is None or like.datatype == "BYTES":
        return Tensor(name, like.datatype, shape, np.concatenate(parts))  # the one copy
    return Tensor(name, like.datatype, shape, np.concatenate(parts, out=out(name, like.datatype, shape)))


def _rows(like: Tensor) -> int:
    return 1 if like.shape else 0


def _zeros(like: Tensor) -> Array:
    return np.zeros((1, *like.shape[1:]), DTYPES[like.datatype])


def _empty_strings(like: Tensor) -> Array:
    return np.zeros(4 * prod(like.shape[1:]), np.uint8)  # a length of zero per element


def _host(tensor: Tensor) -> Array:
    data = tensor.data
    return data if isinstance(data, np.ndarray) else tensor.numpy()


def scatter(batch: Batch, outputs: Mapping[str, Array | Tensor]) -> list[InferResponse]:
    """Return one response per request of `batch`, with views on `outputs` cut along the first dimension.

    Each request gets the outputs that it asked for, in its order, or all that the configuration names.
    Raises Internal where an output is missing, or its type or number of rows is not what the model promised.
    """
    model = batch.model
    assert model is not None, "a batch reaches a backend with its model: this is a bug"  # noqa: S101
    for name in batch.state_outputs:
        batch.new_states[name] = outputs[name]
    tensors = {
        name: _as_tensor(model, name, outputs[name], datatype)
        for name, datatype in model.output_types.items()
        if name in outputs
    }
    if model.config.max_batch_size == 0:
        whole = [[tensors[name] for name in _wanted(model, request, tensors)] for request in batch.requests]
    else:
        _check_rows(model, tensors, batch.size)
        whole = _cut(model, batch, tensors)
    name, version = model.name, model.version
    return [
        InferResponse(parts, name, version, request.id)
        for parts, request in zip(whole, batch.requests, strict=True)
    ]  # fmt: skip


def _cut(model: ModelContext, batch: Batch, tensors: Mapping[str, Tensor]) -> list[list[Tensor]]:
    result, start = [], 0
    for slot in batch.requests if batch.slots is None else batch.slots:
        if slot is None:
            start += 1
            continue
        stop = start + slot.batch_size
        parts = []
        for name in _wanted(model, slot, tensors):
            tensor = tensors[name]
            if tensor.datatype == "BYTES":
                parts.append(_string_rows(tensor, start, stop))
            else:
                part = tensor.data[start:stop]
                parts.append(Tensor(name, tensor.datatype, part.shape, part))
        result.append(parts)
        start = stop
    return result


def _string_rows(tensor: Tensor, start: int, stop: int) -> Tensor:
    offsets, per_row = tensor.offsets(), prod(tensor.shape[1:])
    first, last = start * per_row, stop * per_row
    data = tensor.data[offsets[first] : offsets[last]]
    return Tensor(tensor.name, "BYTES", (stop - start, *tensor.shape[1:]), data)


def _wanted(model: ModelContext, request: InferRequest, tensors: Mapping[str, Tensor]) -> Mapping[str, Any]:
    if request.outputs is None:
        return tensors
    for name in request.outputs:
        if name not in tensors:
            raise Internal(f"model '{model.name}' returned no output '{name}', it returned: {', '.join(tensors)}")
    return request.outputs


def _as_tensor(model: ModelContext, name: str, value: Array | Tensor, datatype: str) -> Tensor:
    if isinstance(value, Tensor):
        tensor = value
    else:
        array = np.asarray(value)
        try:
            found = datatype_of(array.dtype)
        except KeyError:
            found = str(array.dtype)
        if found != datatype:
            raise Internal(
                f"model '{model.name}' returned output '{name}' as {found}, its configuration says {datatype}"
            )
        tensor = Tensor.from_numpy(name, array)
    return tensor


def _check_rows(model: ModelContext, tensors: Mapping[str, Tensor], rows: int) -> None:
    for name, tensor in tensors.items():
        found = tensor.shape[0] if tensor.shape else 0
        if found != rows:
            raise Internal(f"model '{model.name}' returned {found} rows of output '{name}' for a batch of {rows}")
