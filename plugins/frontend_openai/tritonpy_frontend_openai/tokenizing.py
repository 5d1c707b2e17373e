"""Token IDs of texts and chats, texts of token IDs, and Anthropic's count of tokens.

Source: `/tokenize` and `/detokenize` of vLLM's server. The model answers if it has the input
`tokenize_request`; else the file `tokenizer.json` of its tokenizer is used.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import field

from tritonpy import InferRequest
from tritonpy.frontend import Sink
from tritonpy_frontend_openai.bodies import ChatBody, ChatMessage, ModelBody, Tool
from tritonpy_frontend_openai.call import Call
from tritonpy_frontend_openai.chat_generation import ChatGeneration
from tritonpy_frontend_openai.choice_responses import ChoicePiece
from tritonpy_frontend_openai.errors import ApiError
from tritonpy_frontend_openai.messages.bodies import CountTokensBody, chat_of
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.text_contract import KnownParameters, json_request
from tritonpy_frontend_openai.text_models import TOKENIZE_REQUEST, TextModel


class TokenizeBody(ModelBody, kw_only=True):
    """The body of `POST /tokenize`: a text in `prompt`, or a chat in `messages`."""

    prompt: str | None = None
    messages: list[ChatMessage] = field(default_factory=list)
    tools: list[Tool] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] | None = None
    add_special_tokens: bool | None = None
    return_token_strs: bool = False


class DetokenizeBody(ModelBody, kw_only=True):
    """The body of `POST /detokenize`."""

    tokens: list[int]


class _TokenizerCall(Call):
    """A call that is one question to the tokenizer of a model, in the form of the contract."""

    choices = 1
    task = "tokenize"

    def __init__(self, model: TextModel, question: dict[str, Any]) -> None:
        self._model = model
        self._question = question

    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return the request for the model, none if the server has its tokenizer."""
        if not self._model.takes_tokenize_requests:
            return []
        return [json_request(self._model, TOKENIZE_REQUEST, self._question, sink)]

    def _answer(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        if self._model.takes_tokenize_requests:
            answer: dict[str, Any] = json.loads("".join(each.piece.text for each in pieces))
            return answer
        tokenizer = self._model.tokenizer()
        if tokenizer is None:
            raise ApiError(
                f"Model '{self._model.name}' has no tokenizer here: it needs the input "
                f"'{TOKENIZE_REQUEST}', or tokenizer.json in its folder and the package tokenizers",
                param="model",
            )
        return tokenizer.answer(self._question)


class TokenizeCall(_TokenizerCall):
    """One call of `POST /tokenize`."""

    def __init__(
        self, body: TokenizeBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        self._body = body
        if (body.prompt is None) == (not body.messages):
            raise ApiError("give either prompt or messages", param="prompt")
        text = body.prompt
        if text is None:
            text = _prompt(_chat_of(body), model, adapter, options)
        adds_special = body.add_special_tokens
        if adds_special is None:
            adds_special = body.prompt is not None  # templates contain the special tokens
        super().__init__(model, {"text": text, "add_special_tokens": adds_special})

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the token IDs, and their texts if the client wants them."""
        answer = self._answer(pieces)
        return {
            "count": len(answer["tokens"]),
            "tokens": answer["tokens"],
            "token_strs": answer.get("pieces") if self._body.return_token_strs else None,
        }


class DetokenizeCall(_TokenizerCall):
    """One call of `POST /detokenize`."""

    def __init__(
        self, body: DetokenizeBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        super().__init__(model, {"tokens": body.tokens})

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the text."""
        return {"prompt": self._answer(pieces)["text"]}


class CountTokensCall(_TokenizerCall):
    """One call of `POST /v1/messages/count_tokens`."""

    def __init__(
        self, body: CountTokensBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        text = _prompt(chat_of(body), model, adapter, options)
        super().__init__(model, {"text": text, "add_special_tokens": False})

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the number of tokens."""
        return {"input_tokens": len(self._answer(pieces)["tokens"])}


def _chat_of(body: TokenizeBody) -> ChatBody:
    return ChatBody(
        model=body.model,
        messages=body.messages,
        tools=body.tools,
        add_generation_prompt=body.add_generation_prompt,
        continue_final_message=body.continue_final_message,
        chat_template_kwargs=body.chat_template_kwargs,
    )


def _prompt(chat: ChatBody, model: TextModel, adapter: str, options: OpenAiOptions) -> str:
    return ChatGeneration(chat, model, adapter, options).prompt()
