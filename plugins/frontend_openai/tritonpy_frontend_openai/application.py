"""The routes of the API as one ASGI application."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

from tritonpy import Engine, TritonError
from tritonpy.auth import joined_headers
from tritonpy.frontend import (
    LOAD_CALLS,
    MODEL_CALLS,
    FlowControl,
    FrontendContext,
    Reservation,
    StreamSink,
    internal_error,
)
from tritonpy_frontend_openai.access import Access
from tritonpy_frontend_openai.bodies import (
    ChatBody,
    CompletionBody,
    EmbeddingBody,
    ModelBody,
    read_body,
)
from tritonpy_frontend_openai.chat import ChatCall
from tritonpy_frontend_openai.choice_responses import ChoicePiece, ChoiceResponses, deliver
from tritonpy_frontend_openai.completions import CompletionCall
from tritonpy_frontend_openai.embeddings import EmbeddingCall
from tritonpy_frontend_openai.errors import (
    STOPPING,
    ApiError,
    OversizedBody,
    api_error,
    encode,
    error_body,
    unknown_model,
)
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.responses import DONE, HEARTBEAT, event
from tritonpy_frontend_openai.text_models import TextModels

_JSON = (b"content-type", b"application/json")
_EVENTS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
)
_MAX_ID = 256
_LARGE = 128 * 1024  # bytes of a body that is decoded in a thread
_MODEL_ACTION = re.compile(r"/v1/models/(?P<model>.+)/(?P<action>load|unload)")
_MODELS = "/v1/models"

_T = TypeVar("_T")
Send = Callable[[Any], Awaitable[None]]
StreamedCall = ChatCall | CompletionCall
Call = StreamedCall | EmbeddingCall


class _ClientLeft(Exception):
    """The client disconnected before its request was complete."""


class Application:
    """Serves the API on the running event loop.

    While it drains, it refuses new requests.
    """

    def __init__(self, engine: Engine, options: OpenAiOptions, context: FrontendContext) -> None:
        self._engine = engine
        self._options = options
        self._log = context.log
        self._memory = context.memory
        self._tracer = context.tracer
        self._access = Access(options.restricted_apis, context)
        self._models = TextModels(engine, options, context.log)
        self._sink = StreamSink(asyncio.get_running_loop(), deliver)
        self._is_triton = options.compat == "triton"
        self.draining = False

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        headers = _headers(scope)
        reply = _Reply(send, _request_id(headers), triton=self._is_triton)
        try:
            await self._route(scope, headers, receive, reply)
        except _ClientLeft:
            return
        except ApiError as error:
            await reply.error(error)
        except TritonError as error:
            await reply.error(api_error(error))
        except Exception as error:
            failure = internal_error(self._log, "a call of the OpenAI API", error)
            await reply.error(api_error(failure))

    async def _route(
        self, scope: Any, headers: Mapping[str, str], receive: Any, reply: _Reply
    ) -> None:
        if self.draining:
            raise ApiError(STOPPING, 503)
        path, method = scope["path"], scope["method"]
        if path == "/v1/chat/completions":
            _require(method, "POST")
            await self._generate(ChatBody, ChatCall, headers, receive, reply)
        elif path == "/v1/completions":
            _require(method, "POST")
            await self._generate(CompletionBody, CompletionCall, headers, receive, reply)
        elif path == "/v1/embeddings":
            _require(method, "POST")
            await self._generate(EmbeddingBody, EmbeddingCall, headers, receive, reply)
        elif path == _MODELS:
            _require(method, "GET")
            await self._list_models(headers, reply)
        elif action := _MODEL_ACTION.fullmatch(path):
            _require(method, "POST")
            await self._control(action["model"], action["action"], headers, receive, reply)
        elif path.startswith(_MODELS + "/"):
            _require(method, "GET")
            await self._show_model(path.removeprefix(_MODELS + "/"), headers, reply)
        elif path in {"/health", "/health/ready", "/health/live", "/ping"}:
            _require(method, "GET")
            await self._health(path, headers, reply)
        else:
            raise ApiError("Not Found", 404)

    async def _generate(
        self,
        body_kind: type[ModelBody],
        make_call: Callable[..., Call],
        headers: Mapping[str, str],
        receive: Any,
        reply: _Reply,
    ) -> None:
        self._access.check_inference(headers)
        reservation = self._memory.client().reservation()
        data = await self._read(headers, receive, reservation)
        size = len(data)
        body = await _run_if_large(
            size, partial(read_body, data, body_kind, triton=self._is_triton)
        )
        del data
        name, adapter = self._models.real_name(body.model)
        caller = self._access.admit_inference(name, headers)
        try:
            model = self._models.find(name)
        except ApiError as error:
            raise _with_given_name(error, name, body.model) from None
        self._models.check_adapter(model, adapter, body.model)
        self._models.require(model, generates=body_kind is not EmbeddingBody)
        call = make_call(body, model, adapter, self._options)
        if call.choices > self._options.max_choices:
            raise ApiError(
                f"The request has {call.choices} choices, the maximum is "
                f"{self._options.max_choices} (max_choices)",
                param="n",
            )
        requests = await _run_if_large(
            size, partial(call.requests, self._sink, self._engine.request_parameters)
        )
        for index, request in enumerate(requests):
            request.id = reply.request_id + (f"-{index}" if index else "")
            caller.apply(request)
        del body
        generation = ChoiceResponses(self._engine, self._tracer, self._flow_control)
        generation.start(requests, headers)
        del requests
        watcher = asyncio.create_task(_cancel_on_disconnect(receive, generation))
        try:
            if not isinstance(call, EmbeddingCall) and call.stream:
                await self._stream(call, generation, reply)
            else:
                await self._document(call, generation, reply)
        finally:
            watcher.cancel()
            generation.close()

    def _flow_control(self) -> FlowControl:
        return FlowControl(self._options.max_waiting_answers, self._options.max_waiting_bytes)

    async def _document(self, call: Call, generation: ChoiceResponses, reply: _Reply) -> None:
        pieces: list[ChoicePiece] = []
        while new := await generation.next():
            pieces += new
        if generation.is_closed:
            raise _ClientLeft
        await reply.document(call.document(pieces))

    async def _stream(self, call: StreamedCall, generation: ChoiceResponses, reply: _Reply) -> None:
        writer = call.writer()
        heartbeat_s = self._options.heartbeat_s or None
        opened = False
        cut: set[int] = set()  # choices that ended because their tool call is too long
        try:
            async for pieces in _pieces_or_pauses(generation, heartbeat_s):
                if not reply.started:
                    # Not earlier: the first response decides between an error and a stream.
                    await reply.begin_stream()
                if pieces is None:
                    await reply.part(HEARTBEAT)
                    continue
                parts = [] if opened else list(call.opening(writer))
                opened = True
                for piece in pieces:
                    if piece.index in cut:
                        continue
                    parts += call.events(piece, writer)
                    if call.is_too_long(piece.index) and not piece.final:
                        self._log.warning(
                            "a tool call has more than %d bytes: the response ends",
                            self._options.max_tool_call_bytes,
                        )
                        cut.add(piece.index)
                        parts.append(call.truncation(piece.index, writer))
                if parts:
                    await reply.part(b"".join(parts))
                if len(cut) == call.choices:
                    break
        except ApiError as error:
            if not reply.started:
                raise
            await reply.part(event({"error": error.object()}))
        else:
            if generation.is_closed:
                return
            if call.include_usage:
                usage = call.counts.usage()
                if usage is not None or not self._is_triton:
                    await reply.part(writer.usage_chunk(usage))
        await reply.part(DONE)
        await reply.end()

    async def _list_models(self, headers: Mapping[str, str], reply: _Reply) -> None:
        self._access.admit_reading("", headers)
        data = await MODEL_CALLS.run(self._models.listing)
        await reply.document({"object": "list", "data": data})

    async def _show_model(self, name: str, headers: Mapping[str, str], reply: _Reply) -> None:
        name = unquote(name)
        self._access.admit_reading(self._models.real_name(name)[0], headers)
        try:
            model = self._models.model_object(name)
        except ApiError as error:
            raise ApiError(error.message, 404, code="model_not_found") from None
        await reply.document(model)

    async def _control(
        self, name: str, action: str, headers: Mapping[str, str], receive: Any, reply: _Reply
    ) -> None:
        name = unquote(name)
        self._access.admit_control(name, headers)
        if not self._options.model_control:
            raise ApiError("Model load/unload requires --model-control-mode=explicit")
        await self._read(headers, receive, self._memory.client().reservation())
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

    async def _health(self, path: str, headers: Mapping[str, str], reply: _Reply) -> None:
        self._access.check_health(headers)
        healthy = self._engine.is_live() if path == "/health/live" else self._engine.is_ready()
        if not healthy:
            status = 400 if path == "/health/ready" else 503
            raise ApiError("Attached inference engine is not ready for inference requests.", status)
        await reply.empty()

    async def _read(
        self, headers: Mapping[str, str], receive: Any, reservation: Reservation
    ) -> bytes:
        """Return the body of a request. Raises ApiError if it is too large."""
        limit = self._options.max_body_bytes
        declared = int(headers.get("content-length", "0"))
        if declared > limit:
            raise OversizedBody(declared, limit)
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _ClientLeft
            part = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(part)
            if size > limit:
                raise OversizedBody(size, limit)
            if part:
                reservation.require(size)
                parts.append(part)
        return b"".join(parts)


class _Reply:
    """Sends one response: a document, an error, or a stream of events."""

    def __init__(self, send: Send, request_id: str, *, triton: bool) -> None:
        self._send = send
        self._triton = triton
        self.request_id = request_id
        self.started = False

    async def document(self, value: Any) -> None:
        await self._whole(200, encode(value))

    async def empty(self) -> None:
        await self._whole(200, b"")

    async def error(self, error: ApiError) -> None:
        status, body = error_body(error, triton=self._triton)
        extra = [(b"retry-after", error.retry_after.encode())] if error.retry_after else []
        if status == 401:
            extra.append((b"www-authenticate", b'Bearer realm="tritonpy"'))
        if status == 405:
            extra.append((b"allow", (error.param or "").encode()))
        await self._whole(status, body, extra)

    async def begin_stream(self) -> None:
        self.started = True
        await self._start(200, list(_EVENTS))

    async def part(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def _whole(
        self, status: int, body: bytes, extra: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        self.started = True
        await self._start(status, [_JSON, (b"content-length", b"%d" % len(body)), *extra])
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        headers.append((b"x-request-id", self.request_id.encode("latin-1", "replace")))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})


async def _pieces_or_pauses(
    generation: ChoiceResponses, heartbeat_s: float | None
) -> AsyncIterator[list[ChoicePiece] | None]:
    """Yield pieces as they arrive, and None after each `heartbeat_s` seconds without any."""
    while True:
        try:
            pieces = await generation.next(heartbeat_s)
        except TimeoutError:
            yield None
            continue
        if not pieces:
            return
        yield pieces


async def _run_if_large(size: int, work: Callable[[], _T]) -> _T:
    """Return the result of `work`, from a thread if the body has many bytes."""
    return await asyncio.to_thread(work) if size > _LARGE else work()


async def _cancel_on_disconnect(receive: Any, generation: ChoiceResponses) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    generation.cancel()


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


def _with_given_name(error: ApiError, name: str, given: str) -> ApiError:
    """Return the error with the name that the client used."""
    if given == name or error.code != "model_not_found":
        return error
    return unknown_model(given)
