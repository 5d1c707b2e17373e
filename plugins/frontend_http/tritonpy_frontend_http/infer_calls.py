"""Inference calls between a transport and the engine: decode, hand over, await the one answer, encode."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from tritonpy import (
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    Internal,
    InvalidArgument,
    LoopSink,
    RequestMemory,
    Reservation,
    Tracer,
    TritonError,
    Unavailable,
    Unsupported,
    incident,
    now_ns,
)
from tritonpy_frontend_http.body_size import announced_size, check_body_size, refuse_size, unlimited
from tritonpy_frontend_http.compression import compress, decompress, request_encoding, response_encoding
from tritonpy_frontend_http.decode import decode_infer, header_length
from tritonpy_frontend_http.encode import JSON_TYPE, PLAIN_TYPE, Reply, encode_error, encode_infer
from tritonpy_frontend_http.errors import STOPPING
from tritonpy_frontend_http.json_document import INT64_MAX
from tritonpy_frontend_http.raw_request import decode_raw
from tritonpy_frontend_http.tracing import Received, sample, send_traced

if TYPE_CHECKING:
    from tritonpy_frontend_http.access import Visit

Target = tuple[str, str]  # model name, version as written, "" for none
# Compressed bodies up to this size are worked on in the event loop: a thread would cost more than the work.
_INLINE_BELOW = 32 * 1024


def model_version(text: str) -> int:
    """Return a version from a path, -1 for ""; raises InvalidArgument where it is too large for a version."""
    version = int(text) if text else -1
    if version > INT64_MAX:
        raise InvalidArgument(
            f"failed to get model version from specified version string '{text}' (details: stol), "
            "version should be an integral value > 0"
        )
    return version


class Call(msgspec.Struct, eq=False):
    """One inference call on its way: where its reply goes, and what that must know of the request."""

    finish: Callable[[Reply], None]
    visit: Visit | None = None  # set where calls must be admitted
    received: Received | None = None  # set where requests may be traced
    request: InferRequest | None = None
    first: InferResponse | None = None
    answers: int = 0
    opened: bool = False  # its body is unpacked: from here on the request itself is read
    binary: bool = False
    accept_encoding: bytes | None = None
    memory: Reservation | None = None  # for its body, as long as anything refers to the call

    def cancel(self) -> None:
        """Take note that nobody waits for the reply any more."""
        if self.request is not None:
            self.request.cancel()


class InferCalls:
    """Every inference call of a frontend. All methods run on the event loop; each call gets exactly one reply.

    While `draining`, new calls are refused. `tracer` chooses those to trace.
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
        self._sink = LoopSink(loop, self._answered)
        self._open = 0
        self._idle = asyncio.Event()

    async def drain(self) -> None:
        """Refuse new calls and return when the live ones have their reply."""
        self.draining = True
        if self._open:
            await self._idle.wait()

    def start(self, call: Call, target: Target, headers: Mapping[bytes, bytes], body: bytes) -> None:
        """Begin a call; its reply may come before this returns. Header names are in lower case."""
        self._open += 1
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

    def early_refusal(self, target: Target, headers: Mapping[bytes, bytes]) -> Reply | None:
        """Return the answer to a call that is refused for what its head says, None for one whose body is to be read."""
        if self.draining:
            return encode_error(Unavailable(STOPPING))
        lookup = self._sooner(target)
        if lookup is not None:
            return encode_error(lookup)
        size = announced_size(headers)
        try:
            check_body_size(size, self.max_body_bytes)
            if size > self.limit and not unlimited(headers, self.limit):
                refuse_size(headers, size, self.limit)
        except TritonError as error:
            return encode_error(error)
        return None

    def answer(self, call: Call, reply: Reply) -> None:
        """Answer a call that is not begun."""
        self._open += 1
        self._finish(call, reply)

    def refuse_size(self, call: Call, target: Target, headers: Mapping[bytes, bytes], size: int) -> None:
        """Answer a call whose body, of `size` bytes, was not kept."""
        self._open += 1
        try:
            refuse_size(headers, size, self.limit)
        except TritonError as error:
            self._fail(call, target, error)

    def _decompress(self, call: Call, target: Target, headers: Mapping[bytes, bytes], body: bytes) -> None:
        if len(body) <= _INLINE_BELOW // 8:  # compressed JSON grows about that much
            self._submit(call, target, headers, decompress(body, self.limit, _reservation(self, call)))
            return

        def done(work: asyncio.Future[bytes]) -> None:
            try:
                self._submit(call, target, headers, work.result())
            except Exception as error:
                self._fail(call, target, error)

        unpacking = self._loop.run_in_executor(None, decompress, body, self.limit, _reservation(self, call))
        unpacking.add_done_callback(done)

    def _submit(self, call: Call, target: Target, headers: Mapping[bytes, bytes], body: bytes) -> None:
        model, version_text = target
        version = model_version(version_text)
        json_size = header_length(headers.get(b"inference-header-content-length"), len(body))
        call.opened = True
        if json_size:
            request, call.binary = decode_infer(body, json_size, model, version, self._sink, self.limit)
        else:
            config = self._engine.model_config(model, version)
            request, call.binary = decode_raw(body, config, model, version, self._sink, self.limit), True
        if call.visit is not None:
            call.visit.apply(request)
        call.request = request
        request.tag = call
        request.received_ns = now_ns()
        if call.received is not None:
            sample(self.tracer, request, headers, call.received)
        self._engine.infer(request)

    def _fail(self, call: Call, target: Target, error: Exception) -> None:
        if isinstance(error, DecoupledRefused):
            reply = encode_error(self._decoupled())
        elif isinstance(error, TritonError):
            sooner = self._sooner(target)
            reply = encode_error(sooner) if sooner else encode_error(error, JSON_TYPE if call.opened else PLAIN_TYPE)
        else:
            reply = encode_error(self._incident(error))
        self._finish(call, reply)

    def _sooner(self, target: Target) -> TritonError | None:
        # Triton looks the model up before it reads the body, so that error comes first. Looking it up only when
        # something is wrong costs good requests nothing.
        try:
            config = self._engine.model_config(target[0], model_version(target[1]))
        except TritonError as lookup:
            return lookup.with_traceback(None)  # its frames hold the body, and the caller's would hold it
        return self._decoupled() if config.model_transaction_policy.decoupled else None

    def _decoupled(self) -> Unsupported:
        return Unsupported("HTTP end point doesn't support models with decoupled transaction policy")

    def _incident(self, error: Exception) -> Internal:
        return incident(self.log, "an inference call", error)

    def _answered(self, request: InferRequest, response: InferResponse) -> None:
        call: Call = request.tag
        if not response.empty:
            call.answers += 1
            if call.first is None:
                call.first = response
        if response.final:
            encoding = None
            try:
                reply = self._encoded(call, request)
                encoding = response_encoding(call.accept_encoding)
            except Exception as error:
                if response.refused:
                    self._fail(call, (request.model_name, _written(request.model_version)), error)
                    return
                reply = encode_error(error if isinstance(error, TritonError) else self._incident(error))
            if encoding:
                self._compress(call, reply, encoding)
            else:
                self._finish(call, reply)

    def _encoded(self, call: Call, request: InferRequest) -> Reply:
        if call.answers != 1 or call.first is None:
            raise Internal(f"expected a single response, got {call.answers}")
        if call.first.error is not None:
            raise call.first.error
        return encode_infer(call.first, request.outputs, call.binary)

    def _compress(self, call: Call, reply: Reply, encoding: str) -> None:
        if reply.size <= _INLINE_BELOW:
            self._finish(call, _compressed(reply, encoding))
            return
        work = self._loop.run_in_executor(None, _compressed, reply, encoding)
        work.add_done_callback(lambda done: self._finish(call, reply if done.exception() else done.result()))

    def _finish(self, call: Call, reply: Reply) -> None:
        self._open -= 1
        if self.draining and not self._open:
            self._idle.set()
        # The call and its request name each other. Undone here, their buffers go with the last answer and not whenever the
        # collector runs: 16 MB bodies would pile up.
        request, call.request, call.first = call.request, None, None
        if request is not None:
            request.tag = None
            if request.trace is not None:
                send_traced(request.trace, call.finish, reply)
                return
        call.finish(reply)


def _reservation(calls: InferCalls, call: Call) -> Reservation:
    if call.memory is None:
        call.memory = calls.memory.client().reservation()
    return call.memory


def _written(version: int) -> str:
    return "" if version < 0 else str(version)


def _compressed(reply: Reply, encoding: str) -> Reply:
    body = compress(reply.parts, encoding)
    headers = [header for header in reply.headers if header[0] != b"content-length"]
    headers += [(b"content-encoding", encoding.encode()), (b"content-length", b"%d" % len(body))]
    return Reply(reply.status, headers, (body,), len(body))
