"""Postprocessing of responses: client shapes, classification, and output in shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy.model.reshape import Reshape
from tritonpy_types import InferRequest, InferResponse, Tensor, encode_strings
from tritonpy_types.errors import FailureReason, InvalidArgument, TritonError

MAX_ELEMENTS = 1_000_000
_TYPES = frozenset(
    ("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP32", "FP64")
)  # fmt: skip


def classify(tensor: Tensor, count: int, labels: Sequence[str], batched: bool) -> Tensor:
    """Return the top `count` classes of each row as a BYTES tensor, best first.

    Elements are "value:index:label", or "value:index" if the label is missing or empty. The shape
    is [batch, k], or [k] without a batch dimension, with k = min(count, classes). Raises
    `InvalidArgument` for datatypes that the extension does not support, and above 1,000,000
    elements per row.
    """
    if tensor.datatype not in _TYPES:
        raise InvalidArgument(
            f"class result not available for output due to unsupported type '{tensor.datatype}'"
        )
    data: npt.NDArray[Any] = tensor.numpy()
    rows = data.reshape(data.shape[0], -1) if batched else data.reshape(1, -1)
    if rows.size > MAX_ELEMENTS * max(len(rows), 1):
        raise InvalidArgument("classification output tensor too large")
    best = min(count, rows.shape[1])
    texts = [text for row in rows for text in _best(row, best, labels)]
    shape = (len(rows), best) if batched else (best,)
    return Tensor(tensor.name, "BYTES", shape, encode_strings(texts))


def _best(row: npt.NDArray[Any], count: int, labels: Sequence[str]) -> list[str]:
    # Equal values are ordered by index, so that results are reproducible.
    order = np.lexsort((np.arange(row.size), _descending(row)))[:count]
    return [_text(row[index], int(index), labels) for index in order]


def _descending(row: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # ~x reverses the order of integers and, unlike -x, never overflows
    falling: npt.NDArray[Any] = np.negative(row) if row.dtype.kind == "f" else np.invert(row)
    return falling


def _text(value: Any, index: int, labels: Sequence[str]) -> str:
    number = f"{float(value):.6f}" if value.dtype.kind == "f" else str(int(value))
    label = labels[index] if index < len(labels) else ""
    return f"{number}:{index}:{label}" if label else f"{number}:{index}"


class ResponsePostprocessor:
    """Postprocesses the responses of one model version.

    `batched` says that outputs have a batch dimension.
    """

    def __init__(
        self, reshape: Reshape, labels: Mapping[str, Sequence[str]], batched: bool
    ) -> None:
        self._reshape = reshape
        self._reshapes = bool(reshape)
        self._labels = labels
        self._batched = batched

    def apply(
        self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]
    ) -> Sequence[InferResponse]:
        """Return the responses as clients get them, one per request.

        A response that cannot be postprocessed becomes an error response.
        """
        if self._reshapes:
            responses = [
                self._reshaped(request, response)
                for request, response in zip(requests, responses, strict=True)
            ]
        if not any([request.classifies or request.regions is not None for request in requests]):
            return responses
        return [
            self._postprocessed(request, response) for request,
            response in zip(requests, responses, strict=True)
        ]  # fmt: skip

    def _reshaped(self, request: InferRequest, response: InferResponse) -> InferResponse:
        try:
            response.outputs = self._reshape.apply(response.outputs)
        except TritonError as error:
            return InferResponse.failed(request, type(error)(error.message, FailureReason.BACKEND))
        return response

    def _postprocessed(self, request: InferRequest, response: InferResponse) -> InferResponse:
        if request.classifies:
            response = self._classified(request, response)
        return response if request.regions is None else request.regions.finish(request, response)

    def _classified(self, request: InferRequest, response: InferResponse) -> InferResponse:
        try:
            response.outputs = [self._classes(request, tensor) for tensor in response.outputs]
        except TritonError as error:
            return InferResponse.failed(request, error)
        return response

    def _classes(self, request: InferRequest, tensor: Tensor) -> Tensor:
        spec = request.outputs.get(tensor.name) if request.outputs is not None else None
        if spec is None or not spec.classification:
            return tensor
        return classify(
            tensor, spec.classification, self._labels.get(tensor.name, ()), self._batched
        )
