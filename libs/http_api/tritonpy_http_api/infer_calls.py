"""Inference calls: decoding, inference and encoding, independent of the transport."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tritonpy import (
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    Internal,
    InvalidArgument,
    TritonError,
    Unavailable,
    Unsupported,
    now_ns,
)
from tritonpy.frontend import LoopSink, RequestMemory, Reservation, internal_error
from tritonpy.tracing import Tracer
from tritonpy_http_api.body_size import (
    check_body_size,
    declared_size,
    is_unlimited,
    refuse_size,
)
from tritonpy_http_api.compression import (
    compress,
    decompress,
    request_encoding,
    response_encoding,
)
from tritonpy_http_api.decode import decode_infer, header_length
from tritonpy_http_api.encode import (
    JSON_TYPE,
    PLAIN_TYPE,
    HttpResponse,
    encode_error,
    encode_infer,
)
from tritonpy_http_api.errors import STOPPING
from tritonpy_http_api.json_document import INT64_MAX
from tritonpy_http_api.raw_request import decode_raw
from tritonpy_http_api.tracing import Received, sample, send_traced

if TYPE_CHECKING:
    from tritonpy_http_api.access import CallContext

Target = tuple[str, str]  # model name, and version as written ("" for none)
# Bodies up to this size are compressed on the event loop: a thread would cost more.
_INLINE_BELOW = 32 * 1024


def model_version(text: str) -> int:
    """Return a version from a path, -1 for "". Raises InvalidArgument if it exceeds 64 bits."""
    version = int(text) if text else -1
    if version > INT64_MAX:
        raise InvalidArgument(
            f"failed to get model version from specified version string '{text}' (details: stol), "
            "version should be an integral value > 0"
        )
    return version


class HttpInferCall:
    """State of one inference call; `finish` receives its HTTP response.

    `context` is set if calls need authorization.
    """

    received: Received | None = None  # set if requests may be traced
    request: InferRequest | None = None
    first_response: InferResponse | None = None
    responses: int = 0
    is_body_read: bool = False  # set after decompression: later errors are in the request itself
    binary: bool = False
    accept_encoding: bytes | None = None
    memory: Reservation | None = None  # for the body, as long as the call is referenced

    def __init__(
        self, finish: Callable[[HttpResponse], None], context: CallContext | None = None
    ) -> None:
        self.finish = finish
        self.context = context

    def cancel(self) -> None:
        """Cancel the request: the client has disconnected."""
        if self.request is not None:
            self.request.cancel()


class InferCalls:
    """Handles the inference calls of a frontend. Each call gets exactly one HTTP response.

    All methods run on the event loop. While `draining`, new calls are refused. `tracer` selects
    calls to trace.
    """

    def __init__(
        self,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        log: logging.Logger,
        limit: int,
        tracer: Tracer | None = None,
        max_body_bytes: int = 0,
        memory: RequestMemory | None = None,
    ) -> None:
        self.draining = False
        self.max_body_bytes = max_body_bytes
        self.memory = memory or RequestMemory()
        self.tracer = tracer or Tracer()
        self._engine = engine
        self._loop = loop
        self.log = log
        self.limit = limit
        self._sink = LoopSink(loop, self._on_response)
        self._inflight = 0
        self._idle = asyncio.Event()
        self._load_header: list[tuple[bytes, bytes]] = []
        self._note_response: Callable[[], None] | None = None

    def report_load(self, note_response: Callable[[], None]) -> None:
        """Call `note_response` for each response that reports the load."""
        self._note_response = note_response

    def set_load(self, value: bytes) -> None:
        """Report this load with the next responses: the value of `endpoint-load-metrics`."""
        self._load_header = [(b"endpoint-load-metrics", value)]

    async def drain(self) -> None:
        """Refuse new calls and wait until all calls in flight have their response."""
        self.draining = True
        if self._inflight:
            await self._idle.wait()

    def start(
        self, call: HttpInferCall, target: Target, headers: Mapping[bytes, bytes], body: bytes
    ) -> None:
        """Start a call.

        Its response may be sent before this returns. Header names are in lower case.
        """
        self._inflight += 1
        if self.draining:
            self._finish(call, encode_error(Unavailable(STOPPING)))
            return
        call.accept_encoding = headers.get(b"accept-encoding")
        try:
            if b"content-encoding" in headers and request_encoding(headers[b"content-encoding"]):
                self._decompress(call, target, headers, body)
            else:
                self._submit(call, target, headers, body)
        except Exception as error:
            self._fail(call, target, error)

    def early_refusal(self, target: Target, headers: Mapping[bytes, bytes]) -> HttpResponse | None:
        """Return the error response if the call can be refused before its body is read, or None."""
        if self.draining:
            return encode_error(Unavailable(STOPPING))
        lookup = self._lookup_error(target)
        if lookup is not None:
            return encode_error(lookup)
        size = declared_size(headers)
        try:
            check_body_size(size, self.max_body_bytes)
            if size > self.limit and not is_unlimited(headers, self.limit):
                refuse_size(headers, size, self.limit)
        except TritonError as error:
            return encode_error(error)
        return None

    def respond(self, call: HttpInferCall, http_response: HttpResponse) -> None:
        """Send the response to a call that was not started."""
        self._inflight += 1
        self._finish(call, http_response)

    def refuse_size(
        self, call: HttpInferCall, target: Target, headers: Mapping[bytes, bytes], size: int
    ) -> None:
        """Send the refusal of a call whose body of `size` bytes is too large and was dropped."""
        self._inflight += 1
        try:
            refuse_size(headers, size, self.limit)
        except TritonError as error:
            self._fail(call, target, error)

    def _decompress(
        self, call: HttpInferCall, target: Target, headers: Mapping[bytes, bytes], body: bytes
    ) -> None:
        if len(body) <= _INLINE_BELOW // 8:  # JSON expands by about this factor
            self._submit(
                call, target, headers, decompress(body, self.limit, _reservation(self, call))
            )
            return

        def done(decompression: asyncio.Future[bytes]) -> None:
            try:
                self._submit(call, target, headers, decompression.result())
            except Exception as error:
                self._fail(call, target, error)

        decompression = self._loop.run_in_executor(
            None, decompress, body, self.limit, _reservation(self, call)
        )
        decompression.add_done_callback(done)

    def _submit(
        self, call: HttpInferCall, target: Target, headers: Mapping[bytes, bytes], body: bytes
    ) -> None:
        model, version_text = target
        version = model_version(version_text)
        json_size = header_length(headers.get(b"inference-header-content-length"), len(body))
        call.is_body_read = True
        if json_size:
            request, call.binary = decode_infer(
                body, json_size, model, version, self._sink, self.limit
            )
        else:
            config = self._engine.model_config(model, version)
            request, call.binary = (
                decode_raw(body, config, model, version, self._sink, self.limit),
                True,
            )
        if call.context is not None:
            call.context.apply(request)
        call.request = request
        request.tag = call
        request.received_ns = now_ns()
        if call.received is not None:
            sample(self.tracer, request, headers, call.received)
        self._engine.infer(request)

    def _fail(self, call: HttpInferCall, target: Target, error: Exception) -> None:
        if isinstance(error, DecoupledRefused):
            http_response = encode_error(self._decoupled_error())
        elif isinstance(error, TritonError):
            sooner = self._lookup_error(target)
            http_response = (
                encode_error(sooner)
                if sooner
                else encode_error(error, JSON_TYPE if call.is_body_read else PLAIN_TYPE)
            )
        else:
            http_response = encode_error(self._internal_error(error))
        self._finish(call, http_response)

    def _lookup_error(self, target: Target) -> TritonError | None:
        # Triton looks up the model before it reads the body, so a lookup error takes precedence.
        # Doing it only after another error costs valid requests nothing.
        try:
            config = self._engine.model_config(target[0], model_version(target[1]))
        except TritonError as lookup:
            return lookup.with_traceback(None)  # the traceback's frames refer to the body
        return self._decoupled_error() if config.model_transaction_policy.decoupled else None

    def _decoupled_error(self) -> Unsupported:
        return Unsupported(
            "HTTP end point doesn't support models with decoupled transaction policy"
        )

    def _internal_error(self, error: Exception) -> Internal:
        return internal_error(self.log, "an inference call", error)

    def _on_response(self, request: InferRequest, response: InferResponse) -> None:
        call: HttpInferCall = request.tag
        if not response.empty:
            call.responses += 1
            if call.first_response is None:
                call.first_response = response
        if response.final:
            encoding = None
            try:
                http_response = self._encode(call, request)
                encoding = response_encoding(call.accept_encoding)
            except Exception as error:
                if response.refused:
                    self._fail(
                        call, (request.model_name, _version_text(request.model_version)), error
                    )
                    return
                http_response = encode_error(
                    error if isinstance(error, TritonError) else self._internal_error(error)
                )
            if encoding:
                self._compress(call, http_response, encoding)
            else:
                self._finish(call, http_response)

    def _encode(self, call: HttpInferCall, request: InferRequest) -> HttpResponse:
        if call.responses != 1 or call.first_response is None:
            raise Internal(f"expected a single response, got {call.responses}")
        if call.first_response.error is not None:
            raise call.first_response.error
        http_response = encode_infer(call.first_response, request.outputs, call.binary)
        if self._note_response is not None:
            http_response.headers = [*http_response.headers, *self._load_header]
            self._note_response()
        return http_response

    def _compress(self, call: HttpInferCall, http_response: HttpResponse, encoding: str) -> None:
        if http_response.size <= _INLINE_BELOW:
            self._finish(call, _compressed(http_response, encoding))
            return
        compressing = self._loop.run_in_executor(None, _compressed, http_response, encoding)
        compressing.add_done_callback(
            lambda done: self._finish(call, http_response if done.exception() else done.result())
        )

    def _finish(self, call: HttpInferCall, http_response: HttpResponse) -> None:
        self._inflight -= 1
        if self.draining and not self._inflight:
            self._idle.set()
        # The call and its request refer to each other. Breaking the cycle frees their buffers now
        # instead of at the next garbage collection: 16 MB bodies would pile up.
        request, call.request, call.first_response = call.request, None, None
        if request is not None:
            request.tag = None
            if request.trace is not None:
                send_traced(request.trace, call.finish, http_response)
                return
        call.finish(http_response)


def _reservation(calls: InferCalls, call: HttpInferCall) -> Reservation:
    if call.memory is None:
        call.memory = calls.memory.client().reservation()
    return call.memory


def _version_text(version: int) -> str:
    return "" if version < 0 else str(version)


def _compressed(http_response: HttpResponse, encoding: str) -> HttpResponse:
    body = compress(http_response.parts, encoding)
    headers = [header for header in http_response.headers if header[0] != b"content-length"]
    headers += [(b"content-encoding", encoding.encode()), (b"content-length", b"%d" % len(body))]
    return HttpResponse(http_response.status, headers, (body,), len(body))
