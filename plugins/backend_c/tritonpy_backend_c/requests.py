"""Requests as the library reads them: `read_request` in `src/edge.cc`."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tritonpy import DTYPES, Batch, InferRequest, Tensor
from tritonpy_backend_c.wire import Words, address_of

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_START, _END = 1, 2
_MOST_LAYOUTS = 1024
_LAYOUT = tuple[Any, ...]
_EMPTY_SLOT = -1  # the tag of a request that fills a slot without data


class RequestWriter:
    """Packs batches. Names and shapes are sent once, as layouts."""

    def __init__(self, library: Any, config: ModelConfig) -> None:
        self._library = library
        self._outputs = tuple(output.name for output in config.output)
        self._layouts: dict[_LAYOUT, int] = {}
        self._kept: list[Any] = []  # memory of the batch that is packed

    def pack(self, batch: Batch, tags: Sequence[int]) -> tuple[bytes, bytes]:
        """Return words and texts of a batch, whose requests get `tags`.

        The scheduler's tensors become inputs of each request, one row each. A slot without data
        becomes a request with zeros. The memory lives until the next call.
        """
        self._kept = []
        requests: Sequence[InferRequest | None] = batch.requests
        if batch.slots is not None:
            requests = batch.slots
        added = _rows([*batch.controls, *batch.states], len(requests))
        words = Words(len(requests))
        tag = iter(tags)
        for index, request in enumerate(requests):
            more = added[index] if added else ()
            if request is None:
                self._add_empty(words, batch.requests[0], more)
            else:
                self._add(words, request, next(tag), more)
        return words.pack()

    def close(self) -> None:
        """Free the layouts."""
        for layout in self._layouts.values():
            self._library.layout_delete(layout)
        self._layouts.clear()

    def _add(self, words: Words, request: InferRequest, tag: int, more: Sequence[Tensor]) -> None:
        tensors = [*request.inputs.values(), *more]
        outputs = self._outputs if request.outputs is None else tuple(request.outputs)
        sequence = request.sequence
        flags, number, text = 0, 0, ""
        if sequence is not None:
            flags = (_START if sequence.start else 0) | (_END if sequence.end else 0)
            if isinstance(sequence.id, str):
                text = sequence.id
            else:
                number = _signed(sequence.id)
        words.add(tag, self._layout(tensors, outputs), flags, number, bool(text))
        words.text(text)
        words.add(request.timeout_us)
        words.text(request.id)
        trace = request.trace
        words.add(trace is not None)
        words.text("" if trace is None else str(trace))
        words.parameters(request.parameters)
        for tensor in tensors:
            words.add(address_of(tensor), tensor.data.nbytes)
        if more:
            self._kept += more

    def _add_empty(self, words: Words, like: InferRequest, more: Sequence[Tensor]) -> None:
        tensors = [*map(_zeros, like.inputs.values()), *more]
        words.add(_EMPTY_SLOT, self._layout(tensors, ()), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        for tensor in tensors:
            words.add(address_of(tensor), tensor.data.nbytes)
        self._kept += tensors

    def _layout(self, tensors: Sequence[Tensor], outputs: Sequence[str]) -> int:
        key = (outputs, *[(tensor.name, tensor.datatype, tensor.shape) for tensor in tensors])
        layout = self._layouts.get(key)
        if layout is None:
            if len(self._layouts) >= _MOST_LAYOUTS:
                self.close()
            words = Words(len(tensors))
            for tensor in tensors:
                words.spec(tensor.name, tensor.datatype, tensor.shape)
            words.add(len(outputs))
            for output in outputs:
                words.text(output)
            layout = self._layouts[key] = self._library.layout_new(*words.pack())
        return layout


def _signed(number: int) -> int:
    signed: int = struct.unpack("q", struct.pack("Q", number))[0]
    return signed


def _zeros(tensor: Tensor) -> Tensor:
    if tensor.datatype == "BYTES":  # a length of zero for each element
        return Tensor(
            tensor.name, "BYTES", tensor.shape, np.zeros(4 * prod(tensor.shape), np.uint8)
        )
    return Tensor(
        tensor.name, tensor.datatype, tensor.shape, np.zeros(tensor.shape, DTYPES[tensor.datatype])
    )


def _rows(tensors: Sequence[Tensor], count: int) -> list[list[Tensor]]:
    """Return the rows of the scheduler's tensors, one list for each request or slot."""
    return (
        [[row_of(tensor, index) for tensor in tensors] for index in range(count)] if tensors else []
    )


def row_of(tensor: Tensor, index: int) -> Tensor:
    """Return one row of a tensor with a row for each request, as a tensor with one row."""
    if tensor.datatype == "BYTES":
        size = prod(tensor.shape[1:])
        offsets = tensor.offsets()
        data = tensor.data[offsets[index * size] : offsets[(index + 1) * size]]
        return Tensor(tensor.name, "BYTES", (1, *tensor.shape[1:]), data)
    array = tensor.numpy()
    return Tensor(tensor.name, tensor.datatype, (1, *tensor.shape[1:]), array[index : index + 1])
