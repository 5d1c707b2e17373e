"""Vectors of texts: runs an encoder on the rows of a batch and makes one vector of each row's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import Batch, InferRequest, InferResponse, InvalidArgument, ModelContext, Tensor, TritonError
from tritonpy_backend_transformer.folder import ModelFolder
from tritonpy_backend_transformer.runtime import runtime
from tritonpy_backend_transformer.settings import Pooling, Settings

Array = npt.NDArray[Any]
States = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Row:
    """The tokens of one text, and which of two texts each belongs to."""

    numbers: Sequence[int]
    segments: Sequence[int]


class Embedder:
    """Answers batches of an encoder: the rows of all requests go through the model together."""

    def __init__(self, folder: ModelFolder, wanted: Settings, library: Any, model: ModelContext) -> None:
        self._folder = folder
        self._wanted = wanted
        self._library = library
        self._model = model
        self._longest = min(
            (each for each in (wanted.longest, folder.positions) if each is not None), default=None
        )  # fmt: skip
        self._names = [item.name for item in model.config.output]
        self._rows_first = model.config.max_batch_size > 0

    def answer(self, batch: Batch) -> None:
        """Answer every request; one that cannot be read is refused, the others are not."""
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
        vectors = self._vectors(states, pooled, [len(row.numbers) for row in rows])
        batch.stamp()
        begin = 0
        for request, own in readable:
            end = begin + len(own)
            longest = max(len(row.numbers) for row in own)
            self._respond(request, {"embedding": vectors[begin:end], "last_hidden_state": states[begin:end, :longest]})
            begin = end

    def close(self) -> None:
        """Nothing is held beside what the instances share."""

    def _forward(self, rows: Sequence[Row]) -> tuple[States, States | None]:
        segments = [list(row.segments) for row in rows] if self._folder.segments else None
        numbers = [list(row.numbers) for row in rows]
        result = self._library.forward_batch(numbers, token_type_ids=segments)
        pooled = None if result.pooler_output is None else _array(result.pooler_output)
        return _array(result.last_hidden_state), pooled

    def _vectors(self, states: States, pooled: States | None, lengths: Sequence[int]) -> States:
        vectors = pooled if self._wanted.pooling is Pooling.POOLER else pool(states, lengths, self._wanted.pooling)
        assert vectors is not None, "a model without a pooler was refused when it was loaded: this is a bug"  # noqa: S101
        return normalised(vectors) if self._wanted.normalised else vectors

    def _respond(self, request: InferRequest, arrays: dict[str, States]) -> None:
        wanted = self._names if request.outputs is None else list(request.outputs)
        tensors = [Tensor.from_numpy(name, arrays[name] if self._rows_first else arrays[name][0]) for name in wanted]
        request.respond(InferResponse(tensors, self._model.name, self._model.version, request.id))

    def _rows(self, request: InferRequest) -> list[Row]:
        text, numbers = request.inputs.get("text_input"), request.inputs.get("input_ids")
        if (text is None) == (numbers is None):
            raise InvalidArgument("a request needs one of the inputs 'text_input' and 'input_ids'")
        rows = self._rows_of_tokens(request) if text is None else self._rows_of_texts(text)
        for row in rows:
            if not row.numbers:
                raise InvalidArgument("the text has no tokens")
            if self._longest is not None and len(row.numbers) > self._longest:
                raise InvalidArgument(
                    f"the text has {len(row.numbers)} tokens, the model reads at most {self._longest}"
                )
        return rows

    def _rows_of_texts(self, tensor: Tensor) -> list[Row]:
        tokenizer = self._folder.tokenizer
        if tokenizer is None:
            raise InvalidArgument(
                f"'text_input' needs a tokenizer, and there is no 'tokenizer.json' in '{self._folder.path}'"
            )
        try:
            texts = [element.decode() for element in tensor.strings()]
        except UnicodeDecodeError:
            raise InvalidArgument("input 'text_input' is no text in UTF-8") from None
        known = self._folder.source.numbers
        unknown = known.get(self._folder.token("unk_token") or "", 0)
        return [
            Row([known.get(token, unknown) for token in tokens], segments)
            for tokens, segments in tokenizer.encode_all(texts)
        ]

    def _rows_of_tokens(self, request: InferRequest) -> list[Row]:
        numbers = self._matrix(request, "input_ids")
        assert numbers is not None, "the caller has looked for it: this is a bug"  # noqa: S101
        size = len(self._folder.source)
        if numbers.size and (numbers.min() < 0 or numbers.max() >= size):
            raise InvalidArgument(f"'input_ids' must be tokens of the model, which are 0 to {size - 1}")
        mask, segments = self._matrix(request, "attention_mask"), self._matrix(request, "token_type_ids")
        for name, other in (("attention_mask", mask), ("token_type_ids", segments)):
            if other is not None and other.shape != numbers.shape:
                raise InvalidArgument(f"'{name}' has another shape than 'input_ids'")
        lengths = [numbers.shape[1]] * len(numbers) if mask is None else lengths_of(mask)
        types = np.zeros_like(numbers) if segments is None else segments
        return [
            Row(row[:length].tolist(), kinds[:length].tolist())
            for row, kinds, length in zip(numbers, types, lengths, strict=True)
        ]

    def _matrix(self, request: InferRequest, name: str) -> Array | None:
        tensor = request.inputs.get(name)
        if tensor is None:
            return None
        array = tensor.numpy()
        return array if self._rows_first else array[None]


def lengths_of(mask: Array) -> list[int]:
    """Return how many tokens each row of a mask keeps; raises InvalidArgument where those that it leaves out are not the last ones."""
    kept = mask != 0
    lengths: list[int] = kept.sum(axis=1).tolist()
    if any(not row[:length].all() for row, length in zip(kept, lengths, strict=True)):
        raise InvalidArgument("'attention_mask' may leave out tokens at the end of a row alone")
    return lengths


def pool(states: States, lengths: Sequence[int], pooling: Pooling) -> States:
    """Return one vector per row of states [rows, tokens, width]; what is beyond a row's length does not count."""
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


def normalised(vectors: States) -> States:
    """Return vectors of length 1; one of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: States = vectors / np.maximum(lengths, 1e-12)
    return result


def _array(values: Any) -> States:
    ctranslate2 = runtime()
    on_cpu = values if values.device == "cpu" else values.to_device(ctranslate2.Device.cpu)
    array: States = np.array(on_cpu.to(ctranslate2.DataType.float32))
    return array
