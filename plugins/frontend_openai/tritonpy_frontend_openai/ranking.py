"""Ranks of documents for a query, and scores of pairs of texts.

Source: `/rerank` and `/score` of vLLM's server, which follow the APIs of Jina and Cohere. A model
with the input `rerank_request` scores pairs itself. For a model of embeddings, the score is the
cosine of the angle between two vectors.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from tritonpy import InferRequest
from tritonpy.frontend import Sink
from tritonpy_frontend_openai.bodies import ModelBody
from tritonpy_frontend_openai.call import Call
from tritonpy_frontend_openai.choice_responses import ChoicePiece
from tritonpy_frontend_openai.completion_objects import TokenCounts, new_id
from tritonpy_frontend_openai.embeddings import vector_of
from tritonpy_frontend_openai.errors import ApiError
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.text_contract import (
    KnownParameters,
    embedding_request,
    json_request,
)
from tritonpy_frontend_openai.text_models import RERANK_REQUEST, TextModel


class Document(Struct):
    """A document as Cohere's clients send it."""

    text: str


class RerankBody(ModelBody, kw_only=True):
    """The body of `POST /rerank`."""

    query: str
    documents: Annotated[list[str | Document], Meta(min_length=1)]
    top_n: Annotated[int, Meta(ge=0)] | None = None
    return_documents: bool = True


class ScoreBody(ModelBody, kw_only=True):
    """The body of `POST /score`: one text with each of several, or pairs of two lists."""

    text_1: str | list[str]
    text_2: str | list[str]


class _PairScores:
    """Scores a text against others, for several texts; returns one list of scores each."""

    def __init__(self, model: TextModel, groups: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._model = model
        self._groups = groups
        self._texts = list(dict.fromkeys(text for one, more in groups for text in (one, *more)))
        self.requests_needed = len(groups) if model.ranks else len(self._texts)
        self.counts = TokenCounts(range(self.requests_needed))

    def requests(self, sink: Sink) -> list[InferRequest]:
        model = self._model
        if model.ranks:
            return [
                json_request(model, RERANK_REQUEST, {"query": one, "documents": more}, sink)
                for one, more in self._groups
            ]
        return [embedding_request(model, text, None, sink) for text in self._texts]

    def scores(self, pieces: Sequence[ChoicePiece]) -> list[list[float]]:
        for each in pieces:
            self.counts.add(each.index, each.piece)
        if self._model.ranks:
            texts = [""] * len(self._groups)
            for each in pieces:
                texts[each.index] += each.piece.text
            return [json.loads(text) for text in texts]
        vectors: dict[str, Any] = {}
        for each in pieces:
            vector = vector_of(each.piece)
            if vector is not None:
                vector = vector.ravel()
                length = np.linalg.norm(vector)
                vectors[self._texts[each.index]] = vector / length if length else vector
        if len(vectors) < len(self._texts):
            raise ApiError(f"Model '{self._model.name}' returned no embedding", 500)
        return [
            [float(vectors[one] @ vectors[other]) for other in more] for one, more in self._groups
        ]

    def usage(self) -> dict[str, Any]:
        usage = self.counts.usage() or {"prompt_tokens": 0}
        return {"prompt_tokens": usage["prompt_tokens"], "total_tokens": usage["prompt_tokens"]}


class RerankCall(Call):
    """One call of `POST /rerank`."""

    task = "rank"

    def __init__(
        self, body: RerankBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        self._body = body
        self._documents = [each if isinstance(each, str) else each.text for each in body.documents]
        self._scores = _PairScores(model, [(body.query, self._documents)])
        self.choices = self._scores.requests_needed

    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return the requests for the model."""
        return self._scores.requests(sink)

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the documents, the best one first."""
        [scores] = self._scores.scores(pieces)
        results = []
        for index, score in sorted(enumerate(scores), key=lambda each: -each[1]):
            result: dict[str, Any] = {"index": index, "relevance_score": score}
            if self._body.return_documents:
                result["document"] = {"text": self._documents[index]}
            results.append(result)
        if self._body.top_n:
            results = results[: self._body.top_n]
        return {
            "id": new_id("rerank-"),
            "model": self._body.model,
            "usage": self._scores.usage(),
            "results": results,
        }


class ScoreCall(Call):
    """One call of `POST /score`."""

    task = "rank"

    def __init__(
        self, body: ScoreBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        self._model_name = body.model
        ones = [body.text_1] if isinstance(body.text_1, str) else body.text_1
        others = [body.text_2] if isinstance(body.text_2, str) else body.text_2
        if not ones or not others or len(ones) not in {1, len(others)}:
            raise ApiError(
                f"text_1 has {len(ones)} texts and text_2 has {len(others)}: text_1 needs one, or "
                "as many as text_2",
                param="text_1",
            )
        groups = (
            [(ones[0], others)]
            if len(ones) == 1
            else [(one, [other]) for one, other in zip(ones, others, strict=True)]
        )
        self._scores = _PairScores(model, groups)
        self.choices = self._scores.requests_needed

    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return the requests for the model."""
        return self._scores.requests(sink)

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the scores in the order of the pairs."""
        scores = [score for group in self._scores.scores(pieces) for score in group]
        return {
            "id": new_id("score-"),
            "object": "list",
            "created": int(time.time()),
            "model": self._model_name,
            "data": [
                {"index": index, "object": "score", "score": score}
                for index, score in enumerate(scores)
            ],
            "usage": self._scores.usage(),
        }
