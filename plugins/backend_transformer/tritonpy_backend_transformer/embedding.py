"""Embeddings: runs an encoder on the rows of a batch and computes one vector per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import (
    Batch,
    InferRequest,
    InferResponse,
    InvalidArgument,
    ModelContext,
    Tensor,
    TritonError,
)
from tritonpy_backend_transformer.model_folder import ModelFolder
from tritonpy_backend_transformer.runtime import runtime
from tritonpy_backend_transformer.settings import Pooling, Settings

Array = npt.NDArray[Any]
States = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Row:
    """The tokens of one text, and for each token the index of its segment (of two)."""

    token_ids: Sequence[int]
    segments: Sequence[int]


class Embedder:
    """Executes batches of an encoder. The rows of all requests go through the model together."""

    def __init__(
        self, folder: ModelFolder, settings: Settings, library: Any, model: ModelContext
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._library = library
        self._model = model
        self._max_length = min(
            (each for each in (settings.max_length, folder.positions) if each is not None),
            default=None
        )  # fmt: skip
        self._names = [item.name for item in model.config.output]
        self._rows_first = model.config.max_batch_size > 0

    def execute(self, batch: Batch) -> None:
        """Respond to every request. An invalid request gets an error; the others are executed."""
        readable: list[tuple[InferRequest, list[Row]]] = []
        for request in batch.requests:
            try:
                readable.append((request, self._rows(request)))
            except TritonError as error:
                request.respond(InferResponse.failed(request, error))
        batch.stamp()
        if not readable:
            return
        rows = [row for _, rows in readable for row in rows]
        states, pooled = self._forward(rows)
        vectors = self._vectors(states, pooled, [len(row.token_ids) for row in rows])
        batch.stamp()
        begin = 0
        for request, own in readable:
            end = begin + len(own)
            max_length = max(len(row.token_ids) for row in own)
            self._respond(
                request,
                {
                    "embedding": vectors[begin:end],
                    "last_hidden_state": states[begin:end, :max_length],
                },
            )
            begin = end

    def close(self) -> None:
        """Do nothing: the instances share everything that an embedder holds."""

    def _forward(self, rows: Sequence[Row]) -> tuple[States, States | None]:
        segments = [list(row.segments) for row in rows] if self._folder.segments else None
        token_ids = [list(row.token_ids) for row in rows]
        result = self._library.forward_batch(token_ids, token_type_ids=segments)
        pooled = None if result.pooler_output is None else _array(result.pooler_output)
        return _array(result.last_hidden_state), pooled

    def _vectors(self, states: States, pooled: States | None, lengths: Sequence[int]) -> States:
        vectors = (
            pooled
            if self._settings.pooling is Pooling.POOLER
            else pool(states, lengths, self._settings.pooling)
        )
        assert vectors is not None, (  # noqa: S101
            "bug: a model without a pooler must be rejected when it is loaded"
        )
        return normalize(vectors) if self._settings.normalize else vectors

    def _respond(self, request: InferRequest, arrays: dict[str, States]) -> None:
        wanted = self._names if request.outputs is None else list(request.outputs)
        tensors = [
            Tensor.from_numpy(name, arrays[name] if self._rows_first else arrays[name][0])
            for name in wanted
        ]
        request.respond(InferResponse(tensors, self._model.name, self._model.version, request.id))

    def _rows(self, request: InferRequest) -> list[Row]:
        text, token_ids = request.inputs.get("text_input"), request.inputs.get("input_ids")
        if (text is None) == (token_ids is None):
            raise InvalidArgument("a request needs one of the inputs 'text_input' and 'input_ids'")
        rows = self._rows_of_tokens(request) if text is None else self._rows_of_texts(text)
        for row in rows:
            if not row.token_ids:
                raise InvalidArgument("the text has no tokens")
            if self._max_length is not None and len(row.token_ids) > self._max_length:
                raise InvalidArgument(
                    f"the text has {len(row.token_ids)} tokens, the model reads at most "
                    f"{self._max_length}"
                )
        return rows

    def _rows_of_texts(self, tensor: Tensor) -> list[Row]:
        tokenizer = self._folder.tokenizer
        if tokenizer is None:
            raise InvalidArgument(
                f"'text_input' needs a tokenizer, but '{self._folder.path}' contains no "
                "'tokenizer.json'"
            )
        try:
            texts = [element.decode() for element in tensor.strings()]
        except UnicodeDecodeError:
            raise InvalidArgument("input 'text_input' is not valid UTF-8") from None
        known = self._folder.source.token_ids
        unknown = known.get(self._folder.token("unk_token") or "", 0)
        return [
            Row([known.get(token, unknown) for token in tokens], segments)
            for tokens, segments in tokenizer.encode_all(texts)
        ]

    def _rows_of_tokens(self, request: InferRequest) -> list[Row]:
        token_ids = self._matrix(request, "input_ids")
        assert token_ids is not None, "bug: the caller must check that the request has input_ids"  # noqa: S101
        size = len(self._folder.source)
        if token_ids.size and (token_ids.min() < 0 or token_ids.max() >= size):
            raise InvalidArgument(
                f"'input_ids' must be tokens of the model, which are 0 to {size - 1}"
            )
        mask, segments = (
            self._matrix(request, "attention_mask"),
            self._matrix(request, "token_type_ids"),
        )
        for name, other in (("attention_mask", mask), ("token_type_ids", segments)):
            if other is not None and other.shape != token_ids.shape:
                raise InvalidArgument(f"the shape of '{name}' differs from that of 'input_ids'")
        lengths = [token_ids.shape[1]] * len(token_ids) if mask is None else lengths_of(mask)
        types = np.zeros_like(token_ids) if segments is None else segments
        return [
            Row(row[:length].tolist(), kinds[:length].tolist())
            for row, kinds, length in zip(token_ids, types, lengths, strict=True)
        ]

    def _matrix(self, request: InferRequest, name: str) -> Array | None:
        tensor = request.inputs.get(name)
        if tensor is None:
            return None
        array = tensor.numpy()
        return array if self._rows_first else array[None]


def lengths_of(mask: Array) -> list[int]:
    """Return the number of unmasked tokens in each row.

    Raises `InvalidArgument` unless only row ends are masked.
    """
    kept = mask != 0
    lengths: list[int] = kept.sum(axis=1).tolist()
    if any(not row[:length].all() for row, length in zip(kept, lengths, strict=True)):
        raise InvalidArgument("'attention_mask' can only mask tokens at the end of a row")
    return lengths


def pool(states: States, lengths: Sequence[int], pooling: Pooling) -> States:
    """Return one vector per row of `states` [rows, tokens, width], from `lengths` tokens each."""
    if pooling is Pooling.CLS:
        first: States = states[:, 0]
        return first
    ends = np.array(lengths)
    if pooling is Pooling.LAST:
        last: States = states[np.arange(len(states)), ends - 1]
        return last
    mask = (np.arange(states.shape[1])[None] < ends[:, None]).astype(np.float32)
    mean: States = np.einsum("btw,bt->bw", states, mask) / ends[:, None].astype(np.float32)
    return mean


def normalize(vectors: States) -> States:
    """Return `vectors` scaled to length 1. Zero vectors stay unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: States = vectors / np.maximum(lengths, 1e-12)
    return result


def _array(values: Any) -> States:
    ctranslate2 = runtime()
    on_cpu = values if values.device == "cpu" else values.to_device(ctranslate2.Device.cpu)
    array: States = np.array(on_cpu.to(ctranslate2.DataType.float32))
    return array
