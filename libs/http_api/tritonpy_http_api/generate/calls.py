"""Handling of generate calls as an ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonpy import Engine, InferRequest, InferResponse, InvalidArgument, TritonError, now_ns
from tritonpy.frontend import FlowControl, StreamSink, TensorMetadata, internal_error
from tritonpy.tracing import Tracer
from tritonpy_http_api.body_size import declared_size
from tritonpy_http_api.encode import JSON_TYPE, Headers
from tritonpy_http_api.errors import error_body, retry_headers, status_of
from tritonpy_http_api.generate.body import BodyReader
from tritonpy_http_api.generate.decode import decode_generate, read_members
from tritonpy_http_api.generate.encode import (
    EMPTY_RESPONSE,
    NOT_EXACTLY_ONE,
    GenerateResponse,
    encode_failure_response,
    encode_response,
)
from tritonpy_http_api.generate.load_metrics import FORMAT_HEADER, METRICS_HEADER, load_metrics
from tritonpy_http_api.generate.path import GenerateTarget
from tritonpy_http_api.generate.response_queue import ResponseQueue
from tritonpy_http_api.infer_calls import model_version
from tritonpy_http_api.tracing import sample

_EVENTS_TYPE = (b"content-type", b"text/event-stream; charset=utf-8")


class GenerateCalls:
    """Serves the generate calls of a frontend on the running event loop.

    `make_flow_control` returns the `FlowControl` of one call, which bounds the responses that wait
    for its client. `bodies` limits JSON and tensors of a request. `tracer` selects requests to
    trace. With `forward_unknown`, parameters that the model does not read are passed on, as in
    Triton.
    """

    def __init__(
        self,
        engine: Engine,
        log: logging.Logger,
        bodies: BodyReader,
        make_flow_control: Callable[[], FlowControl],
        tracer: Tracer,
        forward_unknown: bool = False,
    ) -> None:
        self._engine = engine
        self._log = log
        self._bodies = bodies
        self._make_flow_control = make_flow_control
        self._tracer = tracer
        self._forward_unknown = forward_unknown
        self._sink = StreamSink(asyncio.get_running_loop(), _deliver)

    async def serve(self, target: GenerateTarget, scope: Any, receive: Any, send: Any) -> None:
        """Serve one call until the last response is sent.

        The request is cancelled if the client disconnects.
        """
        if scope["method"] != "POST":
            await _send_error(send, 405, "Method Not Allowed", [(b"allow", b"POST")])
            return
        started_ns = now_ns()
        headers = dict(scope["headers"])
        memory = self._bodies.reservation()
        try:
            version, inputs = self._look_up(target, headers)
            body = await self._bodies.read(receive, memory)
            if body is None:
                return
            self._bodies.check(body.size)
            members = read_members(body.data)
            known = (
                None
                if self._forward_unknown
                else self._engine.request_parameters(target.model, version)
            )
            request = decode_generate(
                members, target.model, version, inputs, self._sink, self._bodies.limit, known
            )
            del members
            if (context := scope["state"].get("context")) is not None:
                context.apply_principal(request)
            responses = self._start(request, headers, started_ns)
        except Exception as caught:
            error = self._to_triton_error(caught)
            await _send_error(send, status_of(error), error.message, retry_headers(error))
            return
        del body  # it may be large, and the responses may take long
        disconnect_watcher = asyncio.create_task(_cancel_on_disconnect(receive, request, responses))
        try:
            first = await responses.next()
            if first is not None and first.refused and first.error is not None:
                await _send_error(
                    send, status_of(first.error), first.error.message, retry_headers(first.error)
                )
                return
            _stamp(request, "HTTP_SEND_START")
            await self._respond(target, headers, first, responses, send)
        finally:
            disconnect_watcher.cancel()
            _cancel(request, responses)
            _stamp(request, "HTTP_SEND_END")
            if request.trace is not None:
                request.trace.end()

    def _start(
        self, request: InferRequest, headers: Mapping[bytes, bytes], started_ns: int
    ) -> ResponseQueue:
        responses = request.tag = ResponseQueue(self._make_flow_control())
        request.received_ns = now_ns()
        if self._tracer.active:
            sample(self._tracer, request, headers, (started_ns, request.received_ns))
        try:
            self._engine.infer(request)
        except Exception:
            if request.trace is not None:
                request.trace.end()
            raise
        return responses

    def _to_triton_error(self, error: Exception) -> TritonError:
        return (
            error
            if isinstance(error, TritonError)
            else internal_error(self._log, "a generate call", error)
        )

    def _look_up(
        self, target: GenerateTarget, headers: Mapping[bytes, bytes]
    ) -> tuple[int, Sequence[TensorMetadata]]:
        """Return version and inputs of the model.

        Raises TritonError if the head of the request is invalid.
        """
        version = model_version(target.version)
        inputs = self._engine.model_metadata(target.model, version).inputs
        if headers.get(b"content-encoding", b"") not in {b"", b"identity"}:
            raise InvalidArgument("Unsupported content-encoding, only 'identity' is supported.")
        self._bodies.check(declared_size(headers))
        return version, inputs

    async def _respond(
        self,
        target: GenerateTarget,
        headers: Mapping[bytes, bytes],
        response: InferResponse | None,
        responses: ResponseQueue,
        send: Any,
    ) -> None:
        generate_response = self._encode(response)
        kind = _EVENTS_TYPE if target.streams else JSON_TYPE
        await send(
            _response_start(
                generate_response.status, [kind, *self._load_metrics(headers, target.model)]
            )
        )
        if not target.streams:
            is_only = response is not None and await _is_only_response(responses)
            await send(
                _body_part(generate_response.body if is_only else NOT_EXACTLY_ONE, more=False)
            )
            return
        while response is not None:
            await send(_body_part(generate_response.event(), more=True))
            responses.sent()
            response = await responses.next()
            generate_response = self._encode(response)
        await send(_body_part(b"", more=False))

    def _encode(self, response: InferResponse | None) -> GenerateResponse:
        if response is None:
            return EMPTY_RESPONSE
        try:
            return encode_response(response)
        except Exception as error:
            return encode_failure_response(self._to_triton_error(error))

    def _load_metrics(self, headers: Mapping[bytes, bytes], model: str) -> Headers:
        if FORMAT_HEADER not in headers:
            return []
        value = load_metrics(
            headers[FORMAT_HEADER].decode("latin-1"),
            self._engine.custom_metrics(),
            self._log,
            model,
        )
        return [(METRICS_HEADER, value.encode())] if value else []


def _deliver(request: InferRequest, response: InferResponse) -> None:
    request.tag.put(response)


async def _cancel_on_disconnect(
    receive: Any, request: InferRequest, responses: ResponseQueue
) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    _cancel(request, responses)


def _cancel(request: InferRequest, responses: ResponseQueue) -> None:
    if not responses.complete:
        request.cancel()  # first, so that a producer that `abandon` wakes up sees the cancellation
    responses.abandon()


def _stamp(request: InferRequest, name: str) -> None:
    if request.trace is not None:
        request.trace.stamp(name)


async def _is_only_response(responses: ResponseQueue) -> bool:
    others = 0
    responses.sent()
    while await responses.next() is not None:
        responses.sent()
        others += 1
    return others == 0


def _response_start(status: int, headers: Headers) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _body_part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _send_error(
    send: Any, status: int, text: str, more: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    body = error_body(text)
    await send(_response_start(status, [JSON_TYPE, (b"content-length", b"%d" % len(body)), *more]))
    await send(_body_part(body, more=False))
