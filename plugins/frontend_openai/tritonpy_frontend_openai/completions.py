"""Completions: prompts in, the text that follows them out, as one document or a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from tritonpy import InferRequest
from tritonpy.frontend import Sink
from tritonpy_frontend_openai.bodies import CompletionBody
from tritonpy_frontend_openai.call import StreamedCall, event
from tritonpy_frontend_openai.choice_responses import ChoicePiece
from tritonpy_frontend_openai.completion_objects import (
    DONE,
    ChunkWriter,
    TokenCounts,
    completion_logprobs,
    new_id,
)
from tritonpy_frontend_openai.errors import ApiError, unsupported
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.prompts import read_prompts
from tritonpy_frontend_openai.sampling import (
    TRITON_MAX_TOKENS,
    check_common,
    limit_of,
    sampling_of,
)
from tritonpy_frontend_openai.text_contract import (
    GenerationParameters,
    KnownParameters,
    build_request,
)
from tritonpy_frontend_openai.text_models import TextModel

_KIND = "text_completion"


class CompletionCall(StreamedCall):
    """One completion. The choices of each prompt are next to each other."""

    operation = "text_completion"

    def __init__(
        self, body: CompletionBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        self._body = body
        self._model = model
        self._is_triton = options.compat == "triton"
        self._check()
        self._prompts = read_prompts(body.prompt, "prompt")
        self._adapter = adapter
        self._id = new_id("cmpl-")
        self._created = int(time.time())
        self._writer = ChunkWriter(
            self._id, _KIND, self._created, body.model, has_usage=body.include_usage
        )
        self.stream = bool(body.stream)
        each = body.n or 1
        self.choices = len(self._prompts) * each
        self._prompt_of = [index // each for index in range(self.choices)]
        self._counts = TokenCounts(self._prompt_of, model.token_counter())
        self._lengths = [0] * self.choices  # characters of each choice so far
        self._reasons: dict[int, str] = {}  # why each choice ended, if the model says so
        self._max_tokens = limit_of(
            body.max_tokens, model, TRITON_MAX_TOKENS, triton=self._is_triton
        )

    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return a request for each choice."""
        return [
            build_request(self._model, each, sink, known, drops_unknown=self._is_triton)
            for each in self._parameters()
        ]

    def _parameters(self) -> list[GenerationParameters]:
        sampling = sampling_of(self._body)
        each = self._body.n or 1
        for number, given in enumerate(self._prompts):
            self._counts.add_prompt(number, given)
        result = []
        for index, prompt in enumerate(self._prompt_of):
            own = dict(sampling)
            if index % each and "seed" in own:
                own["seed"] += index % each  # choices with one seed would be identical
            result.append(
                GenerationParameters(
                    self._prompts[prompt],
                    self.stream,
                    self._max_tokens,
                    own,
                    self._body.logprobs or None,
                    self._adapter,
                )
            )
        return result

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the response for all pieces of all choices."""
        choices = []
        for index in range(self.choices):
            own = [each.piece for each in pieces if each.index == index]
            for piece in own:
                self._counts.add(index, piece)
            reason = next(
                (each.finish_reason for each in reversed(own) if each.finish_reason), None
            )
            tokens = [token for piece in own for token in piece.logprobs or ()]
            prefix = self._echo(index)
            choices.append(
                {
                    "index": index,
                    "text": prefix + "".join(piece.text for piece in own),
                    "logprobs": completion_logprobs(tokens, len(prefix)),
                    "finish_reason": self._finish_reason(index, reason),
                }
            )
        return {
            "id": self._id,
            "object": _KIND,
            "created": self._created,
            "model": self._body.model,
            "choices": choices,
            "usage": self._counts.usage(),
            "system_fingerprint": None,
        }

    def opening(self) -> Iterator[bytes]:
        """Yield the events before the first piece: the prompts, if they are part of the text."""
        for index in range(self.choices):
            if prefix := self._echo(index):
                self._lengths[index] = len(prefix)
                yield self._writer.chunk(_choice(index, prefix))

    def events(self, piece: ChoicePiece) -> Iterator[bytes]:
        """Yield the events for one piece."""
        index, content = piece.index, piece.piece
        self._counts.add(index, content)
        if content.finish_reason is not None:
            self._reasons[index] = content.finish_reason
        reason = self._finish_reason(index, self._reasons.get(index)) if piece.final else None
        logprobs = completion_logprobs(content.logprobs, self._lengths[index])
        self._lengths[index] += len(content.text)
        if content.text or reason or logprobs:
            yield self._writer.chunk(_choice(index, content.text, reason, logprobs))

    def closing(self) -> Iterator[bytes]:
        """Yield the token counts, if the client wants them, and the end."""
        yield from self._writer.closing(self._counts, triton=self._is_triton)

    def failure(self, error: ApiError) -> Iterator[bytes]:
        """Yield the error and the end."""
        yield event({"error": error.object()})
        yield DONE

    def _check(self) -> None:
        body = self._body
        if body.suffix is not None:
            if self._is_triton:
                raise ApiError("suffix is not currently supported")
            raise unsupported("suffix", "models cannot insert text")
        if self._is_triton and not body.prompt:
            raise ApiError("prompt must be non-empty")
        if self._is_triton and not isinstance(body.prompt, str):
            raise ApiError("only single string input is supported")
        check_common(body, triton=self._is_triton)
        if self._is_triton and body.best_of is not None and self._model.backend == "vllm":
            raise ApiError(
                "best_of is no longer supported in vLLM backend, removed from vLLM V1 engine"
            )
        if body.best_of is not None and body.best_of > (body.n or 1):
            if self._is_triton:
                raise ApiError(
                    f"Received best_of={body.best_of}, but only single choice (best_of=1) is "
                    "currently supported"
                )
            raise unsupported("best_of", "use n and choose among the responses")
        if self._is_triton and body.logit_bias is not None:
            raise ApiError("logit bias is not supported")
        if self._is_triton and body.logprobs and self._model.backend != "vllm":
            raise ApiError("logprobs are currently available only for the vLLM backend")
        if body.echo and body.logprobs:
            raise unsupported("echo", "log probabilities of the prompt are not available")

    def _echo(self, index: int) -> str:
        prompt = self._prompts[self._prompt_of[index]]
        return prompt if self._body.echo and isinstance(prompt, str) else ""

    def _finish_reason(self, index: int, reason: str | None) -> str:
        if self._is_triton:
            return "stop"
        if reason is not None:
            return reason
        generated, limit = self._counts.completion_of.get(index), self._max_tokens
        return "length" if generated is not None and generated == limit else "stop"


def _choice(
    index: int, text: str, reason: str | None = None, logprobs: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}
