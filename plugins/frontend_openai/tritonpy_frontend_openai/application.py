"""The routes of the API as one ASGI application."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from tritonpy import Engine, TritonError
from tritonpy.auth import joined_headers
from tritonpy.frontend import LOAD_CALLS, MODEL_CALLS, FrontendContext, internal_error
from tritonpy_frontend_openai.access import Access
from tritonpy_frontend_openai.bodies import ChatBody, CompletionBody, EmbeddingBody, ModelBody
from tritonpy_frontend_openai.chat import ChatCall
from tritonpy_frontend_openai.completions import CompletionCall
from tritonpy_frontend_openai.embeddings import EmbeddingCall
from tritonpy_frontend_openai.errors import (
    STOPPING,
    ApiError,
    ErrorStyle,
    api_error,
    unknown_model,
)
from tritonpy_frontend_openai.inference import ClientLeft, Inference, MakeCall
from tritonpy_frontend_openai.messages.bodies import CountTokensBody, MessagesBody
from tritonpy_frontend_openai.messages.call import MessagesCall
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.ranking import RerankBody, RerankCall, ScoreBody, ScoreCall
from tritonpy_frontend_openai.reply import Reply, Send
from tritonpy_frontend_openai.text_models import TextModels
from tritonpy_frontend_openai.tokenizing import (
    CountTokensCall,
    DetokenizeBody,
    DetokenizeCall,
    TokenizeBody,
    TokenizeCall,
)

# The calls that run a model, by their paths: the body and the call.
_TRITON_CALLS: Mapping[str, tuple[type[ModelBody], MakeCall]] = {
    "/v1/chat/completions": (ChatBody, ChatCall),
    "/v1/completions": (CompletionBody, CompletionCall),
    "/v1/embeddings": (EmbeddingBody, EmbeddingCall),
}
_CALLS: Mapping[str, tuple[type[ModelBody], MakeCall]] = {
    **_TRITON_CALLS,
    "/v1/messages": (MessagesBody, MessagesCall),
    "/v1/messages/count_tokens": (CountTokensBody, CountTokensCall),
    "/tokenize": (TokenizeBody, TokenizeCall),
    "/detokenize": (DetokenizeBody, DetokenizeCall),
    **dict.fromkeys(("/rerank", "/v1/rerank", "/v2/rerank"), (RerankBody, RerankCall)),
    **dict.fromkeys(("/score", "/v1/score"), (ScoreBody, ScoreCall)),
}
_MESSAGES, _MODELS, _RESPONSES = "/v1/messages", "/v1/models", "/v1/responses"
_HEALTH = frozenset({"/health", "/health/ready", "/health/live", "/ping"})
_MAX_ID = 256
_MODEL_ACTION = re.compile(r"/v1/models/(?P<model>.+)/(?P<action>load|unload)")
_RESPONSE = re.compile(r"/v1/responses/(?P<id>[^/]+)(?P<cancel>/cancel)?")


class Application:
    """Serves the API on the running event loop.

    While it drains, it refuses new requests.
    """

    def __init__(self, engine: Engine, options: OpenAiOptions, context: FrontendContext) -> None:
        self._engine = engine
        self._options = options
        self._log = context.log
        self._memory = context.memory
        self._access = Access(options.restricted_apis, context)
        self._models = TextModels(engine, options, context.log)
        self.inference = Inference(engine, options, context, self._access, self._models)
        self._is_triton = options.compat == "triton"
        self._calls = _TRITON_CALLS if self._is_triton else _CALLS
        self.draining = False

    def handles(self, path: str) -> bool:
        """Return whether a path belongs to the API."""
        return path in self._calls or path.startswith("/v1/") or path in _HEALTH

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        headers = _headers(scope)
        style: ErrorStyle = "triton" if self._is_triton else "openai"
        if scope["path"].startswith(_MESSAGES) and not self._is_triton:
            style = "anthropic"
            if "x-api-key" in headers:  # where Anthropic's clients have their key
                headers.setdefault("authorization", f"Bearer {headers['x-api-key']}")
        reply = Reply(send, _request_id(headers), style)
        try:
            await self._route(scope, headers, receive, reply)
        except ClientLeft:
            return
        except ApiError as error:
            await reply.error(error)
        except TritonError as error:
            await reply.error(api_error(error))
        except Exception as error:
            failure = internal_error(self._log, "a call of the OpenAI API", error)
            await reply.error(api_error(failure))

    async def _route(
        self, scope: Any, headers: Mapping[str, str], receive: Any, reply: Reply
    ) -> None:
        if self.draining:
            raise ApiError(STOPPING, 503)
        path, method = scope["path"], scope["method"]
        if path in self._calls:
            _require(method, "POST")
            body_kind, make_call = self._calls[path]
            await self.inference.run(body_kind, make_call, headers, receive, reply)
        elif path.startswith(_RESPONSES) and not self._is_triton:
            await self._respond(path, method, headers, receive, reply)
        elif path == _MODELS:
            _require(method, "GET")
            await self._list_models(headers, reply)
        elif action := _MODEL_ACTION.fullmatch(path):
            _require(method, "POST")
            await self._control(action["model"], action["action"], headers, receive, reply)
        elif path.startswith(_MODELS + "/"):
            _require(method, "GET")
            await self._show_model(path.removeprefix(_MODELS + "/"), headers, reply)
        elif path in _HEALTH:
            _require(method, "GET")
            await self._health(path, headers, reply)
        else:
            raise ApiError("Not Found", 404)

    async def _respond(
        self, path: str, method: str, headers: Mapping[str, str], receive: Any, reply: Reply
    ) -> None:
        """Answer a call of the Responses API: create, retrieve, cancel, or delete."""
        if path == _RESPONSES:
            _require(method, "POST")
            await self.inference.respond(headers, receive, reply)
            return
        named = _RESPONSE.fullmatch(path)
        if named is None:
            raise ApiError("Not Found", 404)
        if named["cancel"]:
            _require(method, "POST")
            await reply.document(self.inference.cancel(named["id"], headers))
        elif method == "DELETE":
            await reply.document(self.inference.forget(named["id"], headers))
        else:
            _require(method, "GET")
            await reply.document(self.inference.stored(named["id"], headers))

    async def _list_models(self, headers: Mapping[str, str], reply: Reply) -> None:
        self._access.admit_reading("", headers)
        data = await MODEL_CALLS.run(self._models.listing)
        await reply.document({"object": "list", "data": data})

    async def _show_model(self, name: str, headers: Mapping[str, str], reply: Reply) -> None:
        name = unquote(name)
        self._access.admit_reading(self._models.real_name(name)[0], headers)
        try:
            model = self._models.model_object(name)
        except ApiError as error:
            raise ApiError(error.message, 404, code="model_not_found") from None
        await reply.document(model)

    async def _control(
        self, name: str, action: str, headers: Mapping[str, str], receive: Any, reply: Reply
    ) -> None:
        name = unquote(name)
        self._access.admit_control(name, headers)
        if not self._options.model_control:
            raise ApiError("Model load/unload requires --model-control-mode=explicit")
        await self.inference.read(headers, receive, self._memory.client().reservation())
        if action == "load":
            if await MODEL_CALLS.run(self._is_ready, name):
                raise ApiError(f"Model '{name}' is already loaded")
            await self._run_control(f"Failed to load model '{name}'", self._engine.load_model, name)
            await reply.document(self._models.model_object(name))
            return
        if not await MODEL_CALLS.run(self._is_ready, name):
            raise unknown_model(name)
        await self._run_control(f"Failed to unload model '{name}'", self._engine.unload_model, name)
        await reply.document({"status": "success", "model": name})

    def _is_ready(self, name: str) -> bool:
        try:
            return self._engine.is_model_ready(name)
        except TritonError:
            return False

    async def _run_control(self, what: str, operate: Callable[[str], None], name: str) -> None:
        try:
            await LOAD_CALLS.run(operate, name)
        except TritonError as error:
            failure = api_error(error)
            raise ApiError(f"{what}: {error.message}", failure.status, code=failure.code) from error

    async def _health(self, path: str, headers: Mapping[str, str], reply: Reply) -> None:
        self._access.check_health(headers)
        healthy = self._engine.is_live() if path == "/health/live" else self._engine.is_ready()
        if not healthy:
            status = 400 if path == "/health/ready" else 503
            raise ApiError("Attached inference engine is not ready for inference requests.", status)
        await reply.empty()


def _require(method: str, expected: str) -> None:
    if method != expected:
        raise ApiError("Method Not Allowed", 405, param=expected)


def _headers(scope: Any) -> dict[str, str]:
    return joined_headers(
        (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
        for name, value in scope["headers"]
    )


def _request_id(headers: Mapping[str, str]) -> str:
    given = headers.get("x-request-id", "")
    if given and len(given) <= _MAX_ID and given.isascii() and given.isprintable():
        return given
    return str(uuid.uuid4())
