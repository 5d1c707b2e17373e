"""Embeddings: texts or token IDs in, one vector for each out."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritonpy import InferRequest
from tritonpy.frontend import Sink
from tritonpy_frontend_openai.bodies import EmbeddingBody
from tritonpy_frontend_openai.call import Call
from tritonpy_frontend_openai.choice_responses import ChoicePiece
from tritonpy_frontend_openai.completion_objects import TokenCounts
from tritonpy_frontend_openai.errors import ApiError, unsupported
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.prompts import Prompt, read_prompts
from tritonpy_frontend_openai.text_contract import KnownParameters, Piece, embedding_request
from tritonpy_frontend_openai.text_models import TextModel


class EmbeddingCall(Call):
    """One call for embeddings: a request for each input."""

    task = "embed"
    operation = "embeddings"

    def __init__(
        self, body: EmbeddingBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        if options.compat == "triton":
            _check_as_triton(body, model)
        if adapter:
            raise unsupported("model", "adapters have no embeddings")
        if body.dimensions is not None and not model.takes_embedding_requests:
            raise unsupported("dimensions", f"model '{model.name}' has vectors of one size")
        self._body = body
        self._model = model
        self._inputs: list[Prompt] = read_prompts(body.input, "input")
        self.choices = len(self._inputs)
        self._counts = TokenCounts(range(self.choices))

    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return a request for each input."""
        dimensions = self._body.dimensions
        return [embedding_request(self._model, each, dimensions, sink) for each in self._inputs]

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the response for the pieces of all inputs."""
        vectors: list[Any] = [None] * self.choices
        for each in pieces:
            self._counts.add(each.index, each.piece)
            vector = vector_of(each.piece)
            if vector is not None:
                vectors[each.index] = vector
        usage = self._counts.usage()
        if usage is not None:
            del usage["completion_tokens"]
        return {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": self._encoded(vector)}
                for index, vector in enumerate(vectors)
            ],
            "model": self._body.model,
            "usage": usage,
        }

    def _encoded(self, vector: Any) -> Any:
        if vector is None:
            raise ApiError(f"Model '{self._model.name}' returned no embedding", 500)
        if self._body.encoding_format == "base64":
            return base64.b64encode(vector.astype("<f4").tobytes()).decode()
        return vector.ravel().tolist()


def vector_of(piece: Piece) -> Any:
    """Return the embedding in a piece, None if it has none."""
    if piece.embedding is not None:
        return piece.embedding
    return np.array(json.loads(piece.text), np.float32) if piece.text else None


def _check_as_triton(body: EmbeddingBody, model: TextModel) -> None:
    if not model.takes_embedding_requests:
        raise ApiError("TRT-LLM backend and Python backend do not support embedding requests")
    if not isinstance(body.input, str) and not all(isinstance(each, int) for each in body.input):
        details = [
            {
                "type": "value_error",
                "loc": ["body", "input"],
                "msg": "Input should be a valid string",
            }
        ]
        raise ApiError("input must be a text or token IDs", param="input", details=details)
