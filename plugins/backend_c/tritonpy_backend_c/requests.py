"""Requests as the library reads them (`read_request` in `src/edge.cc`), and their new states."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tritonpy import DTYPES, Batch, InferRequest, Tensor
from tritonpy_backend_c.wire import MOST_INT, Words, signed

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_START, _END = 1, 2
_MOST_LAYOUTS = 1024
_LAYOUT = tuple[Any, ...]
_EMPTY_SLOT = -1  # the tag of a request that fills a slot without data, or that only waits


class RequestWriter:
    """Packs batches. Names and shapes are sent once, as layouts."""

    def __init__(self, library: Any, config: ModelConfig) -> None:
        self._library = library
        self._outputs = tuple(output.name for output in config.output)
        self._layouts: dict[_LAYOUT, int] = {}
        # Freed by the next call: the batch that is packed may contain some of them.
        self._replaced: list[int] = []

    def pack(self, batch: Batch, tags: Sequence[int]) -> tuple[bytes, bytes, list[Tensor]]:
        """Return words and texts of a batch, whose requests get `tags`, and the added tensors.

        The scheduler's tensors become inputs of each request, one row each. A slot without data
        becomes a request with zeros. The caller keeps the added tensors while requests are held.
        """
        self._free(self._replaced)
        kept: list[Tensor] = []
        requests: Sequence[InferRequest | None] = batch.requests
        if batch.slots is not None:
            requests = batch.slots
        added = _rows([*batch.controls, *batch.states], len(requests))
        words = Words(len(requests))
        tag = iter(tags)
        for index, request in enumerate(requests):
            more = added[index] if added else ()
            if request is None:
                kept += self._add_empty(words, batch.requests[0], more)
            else:
                self._add(words, request, next(tag), more)
                kept += more
        return *words.pack(), kept

    def pack_one(self, request: InferRequest) -> tuple[bytes, bytes]:
        """Return words and texts of a request that waits. The caller keeps it while it is used.

        Raises `Unsupported` if an input is in the memory of a device.
        """
        self._free(self._replaced)
        words = Words()
        self._add(words, request, _EMPTY_SLOT, ())
        return words.pack()

    def close(self) -> None:
        """Free the layouts."""
        self._free(self._replaced)
        self._free(list(self._layouts.values()))
        self._layouts.clear()

    def _free(self, layouts: list[int]) -> None:
        while layouts:
            self._library.layout_delete(layouts.pop())

    def _add(self, words: Words, request: InferRequest, tag: int, more: Sequence[Tensor]) -> None:
        tensors = [*request.inputs.values(), *more]
        outputs = self._outputs if request.outputs is None else tuple(request.outputs)
        sequence, timeout_us = request.sequence, min(request.timeout_us, MOST_INT)
        if sequence is None and not (request.trace or request.parameters or request.id):
            layout = self._layout(tensors, outputs)
            words.add(tag, layout, 0, 0, 0, 0, 0, timeout_us, 0, 0, 0, 0, 0, 0)
            words.data(tensors)
            return
        flags, number, text = 0, 0, ""
        if sequence is not None:
            flags = (_START if sequence.start else 0) | (_END if sequence.end else 0)
            if isinstance(sequence.id, str):
                text = sequence.id
            else:
                number = signed(sequence.id)
        words.add(tag, self._layout(tensors, outputs), flags, number, bool(text))
        words.text(text)
        words.add(timeout_us)
        words.text(request.id)
        trace = request.trace
        words.add(trace is not None)
        words.text("" if trace is None else str(trace))
        words.parameters(request.parameters)
        words.data(tensors)

    def _add_empty(
        self, words: Words, like: InferRequest, more: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        tensors = [*map(_zeros, like.inputs.values()), *more]
        words.add(_EMPTY_SLOT, self._layout(tensors, ()), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        words.data(tensors)
        return tensors

    def _layout(self, tensors: Sequence[Tensor], outputs: Sequence[str]) -> int:
        key = (outputs, *[(tensor.name, tensor.datatype, tensor.shape) for tensor in tensors])
        layout = self._layouts.get(key)
        if layout is None:
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._replaced += self._layouts.values()
                self._layouts.clear()
            words = Words(len(tensors))
            for tensor in tensors:
                words.spec(tensor.name, tensor.datatype, tensor.shape)
            words.add(len(outputs))
            for output in outputs:
                words.text(output)
            layout = self._layouts[key] = self._library.layout_new(*words.pack())
        return layout


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


class NewStates:
    """Collects the rows of new states until their batch is answered."""

    def __init__(self, config: ModelConfig) -> None:
        self._inputs = {
            state.output_name: state.input_name for state in config.sequence_batching.state
        }
        self._rows: dict[int, dict[str, Tensor]] = {}  # by the tags of the requests

    def add(self, tag: int, state: Tensor) -> None:
        """Take the new state of one request."""
        self._rows.setdefault(tag, {})[state.name] = state

    def apply(self, batch: Batch, tags: Sequence[int]) -> None:
        """Set the new states of `batch`, whose requests have `tags`.

        A request, or slot, whose state was not updated keeps the old one.
        """
        if not self._rows:
            return
        found = [self._rows.pop(tag, {}) for tag in tags]
        old = {tensor.name: tensor for tensor in batch.states}
        requests: Sequence[object] = batch.requests if batch.slots is None else batch.slots
        for name in batch.state_outputs:
            rows, each = [], iter(found)
            for index, request in enumerate(requests):
                new = {} if request is None else next(each, {})
                rows.append(new.get(name) or row_of(old[self._inputs[name]], index))
            first = rows[0]
            data = np.concatenate([row.data for row in rows])
            batch.new_states[name] = Tensor(
                name, first.datatype, (len(rows), *first.shape[1:]), data
            )
