"""Gathering of requests into a batch of arrays, and scattering of outputs into responses.

All functions are pure. `gather` makes the only copy of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, repeat
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy_ipc.blocks import BlockRow, BlockView, Stack, block_ranges
from tritonpy_ipc.signatures import Column, TensorSignature
from tritonpy_types import (
    CPU,
    DATATYPE_OF_NUMBER,
    DTYPES,
    Batch,
    InferRequest,
    InferResponse,
    Tensor,
    datatype_of,
    shape_text,
)
from tritonpy_types.errors import Internal
from tritonpy_types.request import ExecutedModel

Array = npt.NDArray[Any]
Allocate = Callable[[str, str, tuple[int, ...]], Array]


def gather(batch: Batch, out: Allocate | None = None) -> list[Tensor]:
    """Return the inputs of `batch`, each as one tensor with the requests along the first dimension.

    A single request is passed on without a copy. A slot without data becomes rows of zeros (empty
    strings for BYTES). The scheduler's controls and states follow the inputs, then the tensors of
    the configuration's `batch_input`. Ragged inputs have one dimension with all elements. A batch
    has one copy of a shape tensor.

    `out(name, datatype, shape)` may return the memory to write to (shared, pinned); it is not
    called for BYTES. Raises Internal if the requests have different inputs.
    """
    slots: Sequence[InferRequest | None] = batch.requests if batch.slots is None else batch.slots
    first = batch.requests[0]
    alone = len(slots) == 1 and out is None
    model = batch.model
    layout = None if model is None else model.layout
    try:
        inputs: Any = first.inputs
        if alone and layout is None:
            tensors = list(inputs.values())
        elif (
            layout is None and out is None and batch.slots is None and isinstance(inputs, BlockView)
        ):
            tensors = _from_blocks(batch.requests)
        elif layout is None:
            tensors = [_concatenate(name, slots, inputs[name], out) for name in inputs]
        else:
            tensors = [
                layout.gather_input(slots, like, out)
                or (like if alone else _concatenate(like.name, slots, like, out))
                for like in first.inputs.values()
            ]
    except KeyError as error:
        raise Internal(
            f"some requests of a batch have the input {error}, others do not: "
            "its scheduler is wrong"
        ) from error
    if batch.controls or batch.states:
        tensors.extend((*batch.controls, *batch.states))
    if layout is not None:
        tensors += layout.batch_input_tensors(slots)
    return tensors


def _from_blocks(requests: Sequence[InferRequest]) -> list[Tensor]:
    """Return the inputs of requests that arrived in blocks.

    Adjacent requests of one block are not copied.
    """
    found = block_ranges([request.inputs for request in requests])
    if found is None:
        return [
            _concatenate(name, requests, like, None) for name, like in requests[0].inputs.items()
        ]
    if len(found) == 1:
        ((block, first, stop),) = found
        return block.tensors(first, stop)
    columns = found[0][0].signature.columns
    parts = zip(*[block.arrays(first, stop) for block, first, stop in found], strict=True)
    whole = [np.concatenate(arrays) for arrays in parts]
    return [
        Tensor(column.name, column.datatype, array.shape, array)
        for column, array in zip(columns, whole, strict=True)
    ]  # fmt: skip


def _concatenate(
    name: str, slots: Sequence[InferRequest | None], like: Tensor, out: Allocate | None
) -> Tensor:
    tensors = [None if slot is None else slot.inputs[name] for slot in slots]
    if like.datatype == "BYTES":
        data = np.concatenate(
            [_empty_strings(like) if tensor is None else tensor.data for tensor in tensors]
        )
        rows = sum([_rows(like) if tensor is None else tensor.shape[0] for tensor in tensors])
        return Tensor(name, "BYTES", (rows, *like.shape[1:]), data)
    # Inlined on purpose: this runs once per tensor, and a function call would double its cost.
    parts = [
        _zeros(like)
        if tensor is None
        else tensor.data
        if type(tensor.data) is np.ndarray
        else tensor.numpy()
        for tensor in tensors
    ]
    if out is None:
        data = np.concatenate(parts)  # the only copy
    else:
        shape = (sum([part.shape[0] for part in parts]), *like.shape[1:])
        data = np.concatenate(parts, out=out(name, like.datatype, shape))
    return Tensor(name, like.datatype, data.shape, data)


def _rows(like: Tensor) -> int:
    return 1 if like.shape else 0


def _zeros(like: Tensor) -> Array:
    return np.zeros((1, *like.shape[1:]), DTYPES[like.datatype])


def _empty_strings(like: Tensor) -> Array:
    return np.zeros(4 * prod(like.shape[1:]), np.uint8)  # a length of zero per element


def scatter(batch: Batch, outputs: Mapping[str, Array | Tensor]) -> list[InferResponse]:
    """Return one response per request of `batch`, with views of its part of `outputs`.

    Outputs are cut along the first dimension, or as `batch_output` specifies. Each request gets the
    outputs that it requested, in its order, or all configured outputs. State outputs are stored in
    `batch.new_states`. Raises Internal if an output is missing or has the wrong type or number of
    rows, or if a state has the wrong shape.
    """
    model = batch.model
    assert model is not None, "a batch reaches a backend with its model: this is a bug"  # noqa: S101
    if type(outputs) is not dict and not isinstance(outputs, Mapping):
        raise Internal(
            f"model '{model.name}' returned {_described(outputs)}, "
            f"expected a mapping from the names of outputs to arrays: {_names(model.output_types)}"
        )
    if batch.state_outputs:
        outputs = _keep_states(batch, model, outputs)
    tensors = _tensors(model, outputs)
    requests = batch.requests
    if len(tensors) < len(model.output_types):
        _check_complete(batch, model, outputs)
    batched = model.config.max_batch_size > 0
    name, version = model.name, model.version
    if model.layout is None and (not batched or (len(requests) == 1 and batch.slots is None)):
        if batched:
            _check_rows(model, tensors, requests[0].batch_size)
        return [
            InferResponse(_requested_outputs(model, request, tensors), name, version, request.id)
            for request in requests
        ]
    if (
        model.layout is None
        and batch.slots is None
        and (stack := _stack(model, requests, tensors)) is not None
    ):
        whole: Sequence[Sequence[Tensor]] = [
            BlockRow(stack, place) for place in range(len(requests))
        ]
    else:
        columns = _columns(batch, model, tensors)
        rows = (
            zip(*[columns[name] for name in tensors], strict=True)
            if tensors
            else repeat((), len(requests))
        )
        whole = [
            row
            if request.outputs is None
            else _requested_outputs(model, request, dict(zip(tensors, row, strict=True)))
            for request, row in zip(requests, rows, strict=True)
        ]
    return [
        InferResponse(parts, name, version, request.id) for parts,
        request in zip(whole, requests, strict=True)
    ]  # fmt: skip


def _tensors(model: ExecutedModel, outputs: Mapping[str, Array | Tensor]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for name, datatype in model.output_types.items():
        if name in outputs:
            value = outputs[name]
            if type(value) is Tensor and value.datatype == datatype:
                tensors[name] = value
            else:
                tensors[name] = _as_tensor(model, name, value, datatype)
    return tensors


def _stack(
    model: ExecutedModel, requests: Sequence[InferRequest], tensors: Mapping[str, Tensor]
) -> Stack | None:
    """Return the rows of all requests as one stack of numeric arrays, or None.

    It requires that all requests have the same number of rows and request all outputs.
    """
    rows, outputs = requests[0].batch_size, requests[0].outputs
    for request in requests:
        if request.batch_size != rows or request.outputs is not outputs:
            return None
    if not tensors or (outputs is not None and [*outputs] != [*tensors]):
        return None
    described, arrays = [], []
    for tensor in tensors.values():
        data = tensor.data
        plain = type(data) is np.ndarray and tensor.device == CPU and tensor.datatype != "BYTES"
        if not plain or not data.flags.c_contiguous:
            return None
        described.append((tensor.name, tensor.datatype, (rows, *tensor.shape[1:])))
        arrays.append(data)
    _check_rows(model, tensors, rows * len(requests))
    return Stack(_signature(tuple(described)), len(requests), arrays, Tensor)


@lru_cache(maxsize=1024)
def _signature(described: tuple[tuple[str, str, tuple[int, ...]], ...]) -> TensorSignature:
    return TensorSignature(
        [Column(name, datatype, shape, DTYPES[datatype]) for name, datatype, shape in described],
        None,
    )


def _columns(
    batch: Batch, model: ExecutedModel, tensors: Mapping[str, Tensor]
) -> Mapping[str, Sequence[Tensor]]:
    """Return each output as its parts, one for each request."""
    requests, divided = batch.requests, {}
    if model.layout is not None:
        divided = model.layout.split_outputs(
            requests if batch.slots is None else batch.slots, tensors
        )
        tensors = {name: tensor for name, tensor in tensors.items() if name not in divided}
    if model.config.max_batch_size == 0:
        return {name: [tensor] for name, tensor in tensors.items()} | divided
    sizes = [request.batch_size for request in requests]
    if batch.slots is None:
        starts = list(accumulate(sizes, initial=0))
        _check_rows(model, tensors, starts[-1])
    else:
        starts = _starts(batch.slots)
        _check_rows(model, tensors, len(batch.slots))
    return {name: _cut(tensor, sizes, starts) for name, tensor in tensors.items()} | divided


def _keep_states(
    batch: Batch, model: ExecutedModel, outputs: Mapping[str, Array | Tensor]
) -> Mapping[str, Array | Tensor]:
    """Store the state outputs in `batch.new_states`; return the outputs for clients."""
    config = model.config
    described = {state.output_name: state for state in config.sequence_batching.state}
    rows = (batch.size,) if config.max_batch_size else ()
    for name in batch.state_outputs:
        if name not in outputs:
            raise _missing(
                model, name, outputs, {**model.output_types, **dict.fromkeys(batch.state_outputs)}
            )
        state = described[name]
        tensor = _as_tensor(
            model, name, outputs[name], DATATYPE_OF_NUMBER[state.data_type].name, "state output"
        )
        expected = (*rows, *state.dims)
        if len(tensor.shape) != len(expected) or any(
            dimension not in (found, -1)
            for found, dimension in zip(tensor.shape, expected, strict=True)
        ):
            raise Internal(
                f"model '{model.name}' returned state output '{name}' with shape "
                f"{shape_text(tensor.shape)}, "
                f"its configuration says {shape_text(expected)}"
            )
        batch.new_states[name] = tensor
    written = [tensor.data for tensor in batch.states if _is_writable(tensor.data)]
    return (
        {name: _copied_if_shared(value, written) for name, value in outputs.items()}
        if written
        else outputs
    )


def _is_writable(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.flags.writeable


def _copied_if_shared(value: Array | Tensor, buffers: Sequence[Array]) -> Array | Tensor:
    """Return `value`, copied if it shares memory with a state.

    The next execution writes to the state, possibly before this response is sent.
    """
    data = value.data if isinstance(value, Tensor) else value
    if not isinstance(data, np.ndarray) or not any(
        [np.may_share_memory(data, buffer) for buffer in buffers]
    ):
        return value
    return (
        Tensor(value.name, value.datatype, value.shape, data.copy())
        if isinstance(value, Tensor)
        else data.copy()
    )


def _starts(slots: Sequence[InferRequest | None]) -> list[int]:
    """Return the first row of each request; a slot without data takes one row."""
    starts, row = [], 0
    for slot in slots:
        if slot is not None:
            starts.append(row)
        row += 1 if slot is None else slot.batch_size
    return starts


def _cut(tensor: Tensor, sizes: Sequence[int], starts: Sequence[int]) -> list[Tensor]:
    """Return the rows of each request as views."""
    name, datatype, data, device, tail = (
        tensor.name,
        tensor.datatype,
        tensor.data,
        tensor.device,
        tensor.shape[1:],
    )
    if datatype == "BYTES":
        return [
            _string_rows(tensor, start, start + rows)
            for start, rows in zip(starts, sizes, strict=False)
        ]
    one_row = (1, *tail)
    return [
        Tensor(
            name,
            datatype,
            one_row if rows == 1 else (rows, *tail),
            data[start : start + rows],
            device,
        )
        for start, rows in zip(starts, sizes, strict=False)
    ]


def _string_rows(tensor: Tensor, start: int, stop: int) -> Tensor:
    offsets, per_row = tensor.offsets(), prod(tensor.shape[1:])
    first, last = start * per_row, stop * per_row
    data = tensor.data[offsets[first] : offsets[last]]
    return Tensor(tensor.name, "BYTES", (stop - start, *tensor.shape[1:]), data)


def _requested_outputs(
    model: ExecutedModel, request: InferRequest, tensors: Mapping[str, Tensor]
) -> list[Tensor]:
    names = request.outputs
    if names is None:
        return list(tensors.values())
    try:
        return [tensors[name] for name in names]
    except KeyError as error:
        raise _missing(model, error.args[0], tensors) from None


def _check_complete(batch: Batch, model: ExecutedModel, found: Mapping[str, Any]) -> None:
    """Raise Internal for a missing output if an unknown name was returned, or no output at all.

    Only outputs that some request takes are checked. A backend may omit outputs if it returns
    others. A request that names an omitted output gets a separate error.
    """
    if found and found.keys() <= {*model.output_types, *batch.state_outputs}:
        return
    for name in model.output_types:
        if name not in found and any(
            [each.outputs is None or name in each.outputs for each in batch.requests]
        ):
            raise _missing(model, name, found)


def _missing(
    model: ExecutedModel, name: str, found: Iterable[str], expected: Iterable[str] | None = None
) -> Internal:
    return Internal(
        f"model '{model.name}' returned no output '{name}', it returned: "
        f"{_names(found) or 'nothing'}; "
        f"expected: {_names(expected or model.output_types)}"
    )


def _names(names: Iterable[object]) -> str:
    return ", ".join([f"'{name}'" for name in names])


def _described(value: object) -> str:
    """Return a description of a backend's return value for its author."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {shape_text(value.shape)}"
    return f"a value of type '{type(value).__name__}'"


def _as_tensor(
    model: ExecutedModel, name: str, value: Array | Tensor, datatype: str, role: str = "output"
) -> Tensor:
    if isinstance(value, Tensor):
        found = value.datatype
    else:
        value = _as_array(model, name, value, datatype, role)
        found = _datatype_of(value)
    if found != datatype:
        raise Internal(
            f"model '{model.name}' returned {role} '{name}' as {found}, its configuration says "
            f"{datatype}"
        )
    return value if isinstance(value, Tensor) else Tensor.from_numpy(name, value)


def _as_array(model: ExecutedModel, name: str, value: Any, datatype: str, role: str) -> Array:
    error: object = ""
    if value is not None:
        try:
            return np.asarray(value)
        except (TypeError, ValueError) as problem:  # lists of different lengths
            error = f": {problem}"
    raise Internal(
        f"model '{model.name}' returned {_described(value)} as {role} '{name}', "
        f"expected an array of {datatype}, as its configuration says{error}"
    )


def _datatype_of(array: Array) -> str:
    try:
        return datatype_of(array.dtype)
    except KeyError:
        return str(array.dtype)


def _check_rows(model: ExecutedModel, tensors: Mapping[str, Tensor], rows: int) -> None:
    for name, tensor in tensors.items():
        shape = tensor.shape
        found = shape[0] if shape else 0
        if found != rows:
            raise Internal(
                f"model '{model.name}' returned {found} rows of output '{name}' for a batch of "
                f"{rows}"
            )
