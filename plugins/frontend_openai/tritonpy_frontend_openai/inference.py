"""The calls that run models: from the body of a request to its response or stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from tritonpy import Engine
from tritonpy.frontend import (
    FlowControl,
    FrontendContext,
    Reservation,
    StreamSink,
    internal_error,
)
from tritonpy_frontend_openai.access import Access, Caller
from tritonpy_frontend_openai.bodies import ModelBody, read_body
from tritonpy_frontend_openai.call import Call, StreamedCall
from tritonpy_frontend_openai.choice_responses import ChoicePiece, ChoiceResponses, deliver
from tritonpy_frontend_openai.errors import ApiError, OversizedBody, api_error, unknown_model
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.reply import Reply
from tritonpy_frontend_openai.responses.bodies import ResponseBody
from tritonpy_frontend_openai.responses.call import ResponsesCall
from tritonpy_frontend_openai.responses.store import ResponseStore, StoredResponse
from tritonpy_frontend_openai.text_models import Task, TextModel, TextModels
from tritonpy_http_api.generate.load_metrics import FORMAT_HEADER, METRICS_HEADER, load_metrics

_LARGE = 128 * 1024  # bytes of a body that is decoded in a thread

_T = TypeVar("_T")
_Body = TypeVar("_Body", bound=ModelBody)


class MakeCall(Protocol):
    """A class of calls, as its constructor and the task of its model."""

    @property
    def task(self) -> Task:
        """What the model has to be able to do."""

    def __call__(
        self, body: Any, model: TextModel, adapter: str, options: OpenAiOptions, /
    ) -> Call:
        """Return a call. Raises ApiError."""


class ClientLeft(Exception):
    """The client disconnected before its request was complete."""


class _Admitted(Generic[_Body]):
    """A request whose caller may use its model. It holds the memory of the body."""

    def __init__(
        self,
        body: _Body,
        size: int,
        model: TextModel,
        adapter: str,
        caller: Caller,
        reservation: Reservation,
    ) -> None:
        self.body = body
        self.size = size
        self.model = model
        self.adapter = adapter
        self.caller = caller
        self.reservation = reservation


class Inference:
    """Runs calls on the running event loop."""

    def __init__(
        self,
        engine: Engine,
        options: OpenAiOptions,
        context: FrontendContext,
        access: Access,
        models: TextModels,
    ) -> None:
        self._engine = engine
        self._options = options
        self._log = context.log
        self._memory = context.memory
        self._tracer = context.tracer
        self._access = access
        self._models = models
        self._sink = StreamSink(asyncio.get_running_loop(), deliver)
        self._is_triton = options.compat == "triton"
        # A process of several would not know the responses of the others.
        self._store = None
        if context.claim is None:
            self._store = ResponseStore(options.max_stored_responses, options.max_stored_bytes)
        self._background: set[asyncio.Task[None]] = set()

    async def run(
        self,
        body_kind: type[ModelBody],
        make_call: MakeCall,
        headers: Mapping[str, str],
        receive: Any,
        reply: Reply,
    ) -> None:
        """Answer a call. Raises ApiError before the response has begun."""
        admitted = await self._admit(body_kind, make_call.task, headers, receive)
        call = make_call(admitted.body, admitted.model, admitted.adapter, self._options)
        generation = await self._start(call, admitted, headers, reply)
        await self._answer(call, generation, receive, reply)

    async def respond(self, headers: Mapping[str, str], receive: Any, reply: Reply) -> None:
        """Answer a call of `POST /v1/responses`. Raises ApiError before the response has begun."""
        admitted = await self._admit(ResponseBody, ResponsesCall.task, headers, receive)
        body, owner = admitted.body, admitted.caller.owner
        earlier: Any = ()
        if body.previous_response_id is not None:
            earlier = self._kept().find(body.previous_response_id, owner).conversation()
        if body.background:
            self._kept()
        call = ResponsesCall(body, admitted.model, admitted.adapter, self._options, earlier)
        generation = await self._start(call, admitted, headers, reply)
        if body.background:
            await reply.document(self._run_in_background(call, generation, admitted))
            return
        is_delivered = await self._answer(call, generation, receive, reply)
        if is_delivered and self._store is not None and body.store is not False:
            stored = StoredResponse(owner, call.response(call.status()))
            stored.messages = call.messages()
            self._store.add(stored)

    def stored(self, name: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return a response that the server keeps. Raises ApiError."""
        return self._kept().find(name, self._access.owner(headers)).document

    def cancel(self, name: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Cancel a background response and return it. Raises ApiError."""
        response = self._kept().find(name, self._access.owner(headers))
        if not response.document["background"]:
            raise ApiError("Cannot cancel a synchronous response.")
        if response.cancel is not None:
            response.document = {**response.document, "status": "cancelled"}
            response.cancel()
        return response.document

    def forget(self, name: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Remove a response. Raises ApiError."""
        self._kept().remove(name, self._access.owner(headers))
        return {"id": name, "object": "response", "deleted": True}

    async def finish_background(self) -> None:
        """Wait for the background responses."""
        if self._background:
            await asyncio.wait(self._background)

    async def stop(self) -> None:
        """Cancel the background responses."""
        if self._store is not None:
            self._store.cancel_all()
        await self.finish_background()

    def _kept(self) -> ResponseStore:
        if self._store is None:
            raise ApiError(
                "responses are not kept, since the server has several frontend processes", 400
            )
        return self._store

    async def _admit(
        self, kind: type[_Body], task: Task, headers: Mapping[str, str], receive: Any
    ) -> _Admitted[_Body]:
        self._access.check_inference(headers)
        reservation = self._memory.client().reservation()
        data = await self.read(headers, receive, reservation)
        size = len(data)
        body = await _run_if_large(size, partial(read_body, data, kind, triton=self._is_triton))
        del data
        name, adapter = self._models.real_name(body.model)
        caller = self._access.admit_inference(name, headers)
        try:
            model = self._models.find(name)
        except ApiError as error:
            raise _with_given_name(error, name, body.model) from None
        self._models.check_adapter(model, adapter, body.model)
        self._models.require(model, task)
        if not model.is_prepared:
            await asyncio.to_thread(model.prepare)
        return _Admitted(body, size, model, adapter, caller, reservation)

    async def _start(
        self, call: Call, admitted: _Admitted[Any], headers: Mapping[str, str], reply: Reply
    ) -> ChoiceResponses:
        """Start the requests of a call. They hold what they need of the body."""
        if call.choices > self._options.max_choices:
            raise ApiError(
                f"The request has {call.choices} choices, the maximum is "
                f"{self._options.max_choices} (max_choices)",
                param="n",
            )
        requests = await _run_if_large(
            admitted.size, partial(call.requests, self._sink, self._engine.request_parameters)
        )
        for index, request in enumerate(requests):
            request.id = reply.request_id + (f"-{index}" if index else "")
            admitted.caller.apply(request)
        self._report_load(admitted.model.name, headers, reply)
        generation = ChoiceResponses(self._engine, self._tracer, self._flow_control, call.operation)
        generation.start(requests, headers)
        return generation

    def _report_load(self, model: str, headers: Mapping[str, str], reply: Reply) -> None:
        """Add the load of the model's engine to the response, if the client asks for it."""
        format_ = headers.get(FORMAT_HEADER.decode())
        if format_ is None:
            return
        value = load_metrics(format_, self._engine.custom_metrics(), self._log, model)
        if value:
            reply.headers.append((METRICS_HEADER, value.encode()))

    async def _answer(
        self, call: Call, generation: ChoiceResponses, receive: Any, reply: Reply
    ) -> bool:
        """Answer a started call; return whether the client got the whole response."""
        watcher = asyncio.create_task(_cancel_on_disconnect(receive, generation))
        try:
            if isinstance(call, StreamedCall) and call.stream:
                return await self._stream(call, generation, reply)
            document = call.document(await _all_pieces(generation))
            if generation.is_closed:
                raise ClientLeft
            await reply.document(document)
            return True
        finally:
            watcher.cancel()
            generation.close()

    def _flow_control(self) -> FlowControl:
        return FlowControl(self._options.max_waiting_answers, self._options.max_waiting_bytes)

    async def _stream(self, call: StreamedCall, generation: ChoiceResponses, reply: Reply) -> bool:
        heartbeat_s = self._options.heartbeat_s or None
        opened = False
        cut: set[int] = set()  # choices that ended because their tool call is too long
        try:
            async for pieces in _pieces_or_pauses(generation, heartbeat_s):
                if not reply.started:
                    # Not earlier: the first response decides between an error and a stream.
                    await reply.begin_stream()
                if pieces is None:
                    await reply.part(call.heartbeat)
                    continue
                parts = [] if opened else list(call.opening())
                opened = True
                for piece in pieces:
                    if piece.index in cut:
                        continue
                    parts += call.events(piece)
                    if call.is_too_long(piece.index) and not piece.final:
                        self._log.warning(
                            "a tool call has more than %d bytes: the response ends",
                            self._options.max_tool_call_bytes,
                        )
                        cut.add(piece.index)
                        parts += call.truncation(piece.index)
                if parts:
                    await reply.part(b"".join(parts))
                if len(cut) == call.choices:
                    break
        except ApiError as error:
            if not reply.started:
                raise
            await reply.part(b"".join(call.failure(error)))
            await reply.end()
            return False
        if generation.is_closed:
            return False
        await reply.part(b"".join(call.closing()))
        await reply.end()
        return True

    def _run_in_background(
        self, call: ResponsesCall, generation: ChoiceResponses, admitted: _Admitted[Any]
    ) -> dict[str, Any]:
        """Start a task that completes a response, and return the response as it is now."""
        store = self._kept()
        stored = StoredResponse(admitted.caller.owner, call.response("queued"), generation.cancel)
        try:
            store.add(stored)
        except BaseException:
            generation.close()
            raise
        task = asyncio.create_task(self._complete(call, generation, stored, admitted))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return stored.document

    async def _complete(
        self,
        call: ResponsesCall,
        generation: ChoiceResponses,
        stored: StoredResponse,
        admitted: _Admitted[Any],
    ) -> None:
        """Complete a background response, whatever happens."""
        document = call.response("cancelled")
        try:
            complete = call.document(await _all_pieces(generation))
            if not generation.is_closed:
                document = complete
        except ApiError as error:
            document = call.response("failed", error)
        except Exception as error:
            failure = api_error(internal_error(self._log, "a background response", error))
            document = call.response("failed", failure)
        finally:
            generation.close()
            self._kept().complete(stored, document, call.messages())
            admitted.reservation.shrink()

    async def read(
        self, headers: Mapping[str, str], receive: Any, reservation: Reservation
    ) -> bytes:
        """Return the body of a request. Raises ApiError if it is too large, and ClientLeft."""
        limit = self._options.max_body_bytes
        declared = int(headers.get("content-length", "0"))
        if declared > limit:
            raise OversizedBody(declared, limit)
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            part = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(part)
            if size > limit:
                raise OversizedBody(size, limit)
            if part:
                reservation.require(size)
                parts.append(part)
        return b"".join(parts)


async def _all_pieces(generation: ChoiceResponses) -> list[ChoicePiece]:
    pieces: list[ChoicePiece] = []
    while new := await generation.next():
        pieces += new
    return pieces


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


def _with_given_name(error: ApiError, name: str, given: str) -> ApiError:
    """Return the error with the name that the client used."""
    if given == name or error.code != "model_not_found":
        return error
    return unknown_model(given)
