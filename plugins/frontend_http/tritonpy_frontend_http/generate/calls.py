"""Generate calls as an ASGI application: read, map, hand over, send answers as fast as the client takes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonpy import (
    Engine,
    InferRequest,
    InferResponse,
    InvalidArgument,
    Room,
    StreamSink,
    TensorMetadata,
    Tracer,
    TritonError,
    incident,
    now_ns,
)
from tritonpy_frontend_http.body_size import announced_size
from tritonpy_frontend_http.encode import JSON_TYPE, Headers
from tritonpy_frontend_http.errors import error_body, retry_headers, status_of
from tritonpy_frontend_http.generate.answer import NOT_ONE, NOTHING, Answer, encode_answer, encode_failure
from tritonpy_frontend_http.generate.answers import Answers
from tritonpy_frontend_http.generate.body import BodyReader
from tritonpy_frontend_http.generate.load_metrics import ASKED, TOLD, load_metrics
from tritonpy_frontend_http.generate.mapping import map_request, read_members
from tritonpy_frontend_http.generate.path import GenerateTarget
from tritonpy_frontend_http.infer_calls import model_version
from tritonpy_frontend_http.tracing import sample

_EVENTS_TYPE = (b"content-type", b"text/event-stream; charset=utf-8")


class GenerateCalls:
    """Serves the generate calls of a frontend on the running event loop.

    `make_room` returns the room of one call: how many answers may wait for its client before the model is told to. `bodies` bounds JSON and
    tensors of a request; `tracer` chooses those to trace. With `forwards_unknown` a model is given parameters that it does not read, as in Triton.
    """

    def __init__(
        self,
        engine: Engine,
        log: logging.Logger,
        bodies: BodyReader,
        make_room: Callable[[], Room],
        tracer: Tracer,
        forwards_unknown: bool = False,
    ) -> None:
        self._engine = engine
        self._log = log
        self._bodies = bodies
        self._make_room = make_room
        self._tracer = tracer
        self._forwards_unknown = forwards_unknown
        self._sink = StreamSink(asyncio.get_running_loop(), _deliver)

    async def serve(self, target: GenerateTarget, scope: Any, receive: Any, send: Any) -> None:
        """Answer one call. It ends with the last answer, or when its client has gone: then its request is cancelled."""
        if scope["method"] != "POST":
            await _send_error(send, 405, "Method Not Allowed", [(b"allow", b"POST")])
            return
        began_ns = now_ns()
        headers = dict(scope["headers"])
        memory = self._bodies.reservation()
        try:
            version, inputs = self._looked_up(target, headers)
            body = await self._bodies.read(receive, memory)
            if body is None:
                return
            self._bodies.check(body.size)
            members = read_members(body.data)
            known = None if self._forwards_unknown else self._engine.request_parameters(target.model, version)
            request = map_request(members, target.model, version, inputs, self._sink, self._bodies.limit, known)
            del members
            if (visit := scope["state"].get("visit")) is not None:
                visit.keep(request)
            answers = self._start(request, headers, began_ns)
        except Exception as caught:
            error = self._described(caught)
            await _send_error(send, status_of(error), error.message, retry_headers(error))
            return
        del body  # it may be large, and the answers take their time
        gone = asyncio.create_task(_give_up_with_client(receive, request, answers))
        try:
            first = await answers.next()
            if first is not None and first.refused and first.error is not None:
                await _send_error(send, status_of(first.error), first.error.message, retry_headers(first.error))
                return
            _stamp(request, "HTTP_SEND_START")
            await self._reply(target, headers, first, answers, send)
        finally:
            gone.cancel()
            _give_up(request, answers)
            _stamp(request, "HTTP_SEND_END")
            if request.trace is not None:
                request.trace.end()

    def _start(self, request: InferRequest, headers: Mapping[bytes, bytes], began_ns: int) -> Answers:
        answers = request.tag = Answers(self._make_room())
        request.received_ns = now_ns()
        if self._tracer.active:
            sample(self._tracer, request, headers, (began_ns, request.received_ns))
        try:
            self._engine.infer(request)
        except Exception:
            if request.trace is not None:
                request.trace.end()
            raise
        return answers

    def _described(self, error: Exception) -> TritonError:
        return error if isinstance(error, TritonError) else incident(self._log, "a generate call", error)

    def _looked_up(
        self, target: GenerateTarget, headers: Mapping[bytes, bytes]
    ) -> tuple[int, Sequence[TensorMetadata]]:
        """Return the version and the inputs of a model. Raises TritonError for a call that is refused for what its head says."""
        version = model_version(target.version)
        inputs = self._engine.model_metadata(target.model, version).inputs
        if headers.get(b"content-encoding", b"") not in {b"", b"identity"}:
            raise InvalidArgument("Unsupported content-encoding, only 'identity' is supported.")
        self._bodies.check(announced_size(headers))
        return version, inputs

    async def _reply(
        self,
        target: GenerateTarget,
        headers: Mapping[bytes, bytes],
        response: InferResponse | None,
        answers: Answers,
        send: Any,
    ) -> None:
        answer = self._encoded(response)
        kind = _EVENTS_TYPE if target.streams else JSON_TYPE
        await send(_start_of_reply(answer.status, [kind, *self._load_metrics(headers)]))
        if not target.streams:
            only = response is not None and await _is_last(answers)
            await send(_part(answer.body if only else NOT_ONE, more=False))
            return
        while response is not None:
            await send(_part(answer.event(), more=True))
            answers.sent()
            response = await answers.next()
            answer = self._encoded(response)
        await send(_part(b"", more=False))

    def _encoded(self, response: InferResponse | None) -> Answer:
        if response is None:
            return NOTHING
        try:
            return encode_answer(response)
        except Exception as error:
            return encode_failure(self._described(error))

    def _load_metrics(self, headers: Mapping[bytes, bytes]) -> Headers:
        if ASKED not in headers:
            return []
        told = load_metrics(headers[ASKED].decode("latin-1"), self._engine.custom_metrics(), self._log)
        return [(TOLD, told.encode())] if told else []


def _deliver(request: InferRequest, response: InferResponse) -> None:
    request.tag.put(response)


async def _give_up_with_client(receive: Any, request: InferRequest, answers: Answers) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    _give_up(request, answers)


def _give_up(request: InferRequest, answers: Answers) -> None:
    if not answers.complete:
        request.cancel()  # first, so that a producer that waits for room sees it when it goes on
    answers.abandon()


def _stamp(request: InferRequest, name: str) -> None:
    if request.trace is not None:
        request.trace.stamp(name)


async def _is_last(answers: Answers) -> bool:
    others = 0
    answers.sent()
    while await answers.next() is not None:
        answers.sent()
        others += 1
    return others == 0


def _start_of_reply(status: int, headers: Headers) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _send_error(send: Any, status: int, text: str, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    body = error_body(text)
    await send(_start_of_reply(status, [JSON_TYPE, (b"content-length", b"%d" % len(body)), *more]))
    await send(_part(body, more=False))
