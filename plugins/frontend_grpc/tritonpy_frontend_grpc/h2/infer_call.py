"""The fast path of ModelInfer on an HTTP/2 stream, without a task, coroutine or future."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from tritonpy import Internal, TritonError, Unsupported
from tritonpy.frontend import RequestMemory
from tritonpy_frontend_grpc.call import InferCall
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.decompression import COMPRESSED_PREFIXES
from tritonpy_frontend_grpc.h2.compression import frame_message
from tritonpy_frontend_grpc.h2.h2_call import (
    CANCELLED,
    INCOMPLETE,
    MORE_MESSAGES,
    NO_MESSAGE,
    H2Call,
)
from tritonpy_frontend_grpc.h2.long_message import LongMessage, is_long
from tritonpy_frontend_grpc.h2.message_frames import (
    PREFIX,
    MessageFrame,
    MessageReader,
    check_length,
    prefix,
)
from tritonpy_frontend_grpc.h2.response_headers import (
    END,
    START,
    compressed_headers,
    load_end_block,
    refusal_block,
    response_head_block,
    status_and_trailers,
)
from tritonpy_http2 import Receiver

if TYPE_CHECKING:
    from tritonpy import InferRequest, InferResponse
    from tritonpy.frontend import ClientMemory, Reservation
    from tritonpy_frontend_grpc.h2.compression import Compression
    from tritonpy_frontend_grpc.h2.head import CallHead
    from tritonpy_frontend_grpc.service import InferenceService
    from tritonpy_http2 import Http2CallStream

_UNCOUNTED = RequestMemory.UNCOUNTED


@mypyc_attr(allow_interpreted_subclasses=True)
class H2InferCall(H2Call, InferCall, Receiver):
    """One call: reads the message, submits it to the service, and sends the response.

    The complete response waits on the stream if the client does not read it.
    """

    responses = 0
    first_response: InferResponse | None = None
    over = False
    request: InferRequest | None = None
    memory: Reservation | None = None
    _frames: MessageReader | None = None
    _long_message: LongMessage | None = None  # set if the message is long enough for its own buffer
    _submitted = False  # the message was passed to the service
    _finishing: asyncio.Task[None] | None = None

    def __init__(self, service: InferenceService, head: CallHead, stream: Http2CallStream) -> None:
        self.head = head
        self._service = service
        self._stream = stream

    # What the client sends

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        if self._long_message is not None:
            self._add(self._long_message, data, ended)
        elif (
            not ended
            and self._frames is None
            and is_long(data)
            and not (self.over or self._submitted)
        ):
            self._allocate(data)
        else:
            self._take(data, not ended)

    def body_buffer(self) -> memoryview | None:
        return None if self._long_message is None else self._long_message.body_buffer()

    def body_buffer_updated(self, count: int, ended: bool) -> None:
        assert self._long_message is not None  # noqa: S101
        self._long_message.body_buffer_updated(count)
        if self._long_message.missing:
            self._check_complete(self._long_message, ended)
        else:  # the reader releases the buffer only after this callback
            asyncio.get_running_loop().call_soon(self._continue_after_read)

    def reset(self) -> None:
        """Cancel the call: the client has disconnected."""
        if not self.over:
            self._stop()
            self.status = CANCELLED
            self.done()

    def _take(self, part: bytes | memoryview, more: bool) -> None:
        """Process a part of the body; `more` is whether another one follows.

        Data after the submitted message is dropped.
        """
        if self.over or self._submitted:
            return
        if self._frames is None and len(part) >= PREFIX.size:
            compressed, length = PREFIX.unpack_from(part)
            if PREFIX.size + length == len(part):
                if length > self._service.unchecked and not self._fits(length):
                    return
                message = bytes(part[PREFIX.size :])
                if compressed or message[:1] in COMPRESSED_PREFIXES:
                    self._begin(MessageFrame(compressed, message))
                else:
                    self.submit(message)
                return
        self._collect(bytes(part), more)

    def _begin(self, frame: MessageFrame) -> None:
        """Submit the message of a frame, which may be compressed."""
        try:
            message = self.message_of(frame)
        except TritonError as error:
            self.fail(error)
            return
        self.submit(message)

    def submit(self, message: bytes) -> None:
        """Pass the message to the service."""
        self._submitted = True
        self._service.infer(message, self)

    def expire(self) -> None:
        if not self.over:
            self._stop()
            self.fail(DeadlineExceeded())

    def finish(self, result: bytes | TritonError) -> None:
        if self.memory is not None:
            self.memory = None  # the message is no longer needed
        if not isinstance(result, bytes):
            self.fail(result)
        elif len(result) > _UNCOUNTED and not self._stream.admits(len(result)):
            self.fail(self._service.memory.refusal(len(result)))
        elif self.compression is not None:
            self._finishing = asyncio.create_task(self._finish_compressed(result, self.compression))
        else:
            end = END if self._service.note_response is None else load_end_block(self._service)
            self._stream.send(START, (prefix(result), result), end)
            self.done()

    def fail(self, error: TritonError) -> None:
        """End the call with an error status."""
        self.over = True
        self.status, trailers = status_and_trailers(error)
        self._stream.send(None, (), refusal_block(trailers))
        self.done()

    def account(self) -> ClientMemory | None:
        account: ClientMemory | None = self._stream.account  # type: ignore[assignment]  # the type that the server passed in
        return account

    def _reserve(self, nbytes: int) -> bool:
        """Reserve `nbytes` for the message.

        If the request memory is full, fail and return False.
        """
        if self.memory is None:
            self.memory = (self.account() or self._service.memory.client()).reservation()
        try:
            self.memory.require(nbytes)
        except TritonError as error:
            self._frames = self.memory = None
            self.fail(error)
            return False
        return True

    def _fits(self, length: int) -> bool:
        try:
            check_length(length, self._service.max_message)
        except TritonError as error:
            self.fail(error)
            return False
        return self._reserve(length)

    def _collect(self, part: bytes, more: bool) -> None:
        if self._frames is None:
            self._frames = MessageReader(self._service.max_message)
        self._frames.feed(part)
        if not self._reserve(self._frames.unread):
            return
        try:
            frame = self._frames.next()
        except TritonError as error:
            self._frames = None
            self.fail(error)
            return
        if frame is not None and self._frames.partial:
            self.fail(Unsupported(MORE_MESSAGES))
        elif frame is not None:
            self._frames = None
            self._begin(frame)
        elif not more:
            self.fail(Internal(INCOMPLETE) if self._frames.partial else Unsupported(NO_MESSAGE))

    def _stop(self) -> None:
        if self._submitted:
            self._service.cancel(self)
        self.over = True

    async def _finish_compressed(self, result: bytes, compression: Compression) -> None:
        frame = await frame_message(result, compression)
        end = END if self._service.note_response is None else load_end_block(self._service)
        self._stream.send(response_head_block(compressed_headers(compression.name)), (frame,), end)
        self.done()

    # A message with a buffer of its own

    def _allocate(self, start: bytes | memoryview) -> None:
        try:
            check_length(int.from_bytes(start[1 : PREFIX.size], "big"), self._service.max_message)
            message = LongMessage(start)
        except TritonError as error:
            self.fail(error)
            return
        if self._reserve(message.filled_bytes):
            self._long_message = message

    def _add(self, message: LongMessage, data: bytes | memoryview, ended: bool) -> None:
        if len(data) > message.missing:
            self.fail(Unsupported(MORE_MESSAGES))
        else:
            message.add(data)
            self._check_complete(message, ended)

    def _continue_after_read(self) -> None:
        if self._long_message is not None and not self.over:
            self._check_complete(self._long_message, ended=False)

    def _check_complete(self, message: LongMessage, ended: bool) -> None:
        if not self._reserve(message.filled_bytes):
            self._long_message = None
        elif not message.missing:
            self._long_message = None
            self._begin(message.frame())
        elif ended:
            self.fail(Internal(INCOMPLETE))
