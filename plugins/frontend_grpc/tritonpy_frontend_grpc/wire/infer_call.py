"""The fast path of ModelInfer, without a task, coroutine or future."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING

from tritonpy import Internal, RequestMemory, TritonError, Unsupported
from tritonpy_frontend_grpc.call import InferCall
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.decompression import COMPRESSED_PREFIXES
from tritonpy_frontend_grpc.wire.compression import frame_message
from tritonpy_frontend_grpc.wire.message_frames import PREFIX, MessageFrame, MessageReader, check_length
from tritonpy_frontend_grpc.wire.response_headers import status_and_trailers
from tritonpy_frontend_grpc.wire.wire_call import CANCELLED, INCOMPLETE, MORE_MESSAGES, NO_MESSAGE, WireCall

if TYPE_CHECKING:
    from tritonpy import Reservation
    from tritonpy_frontend_grpc.service import InferenceService
    from tritonpy_frontend_grpc.wire.compression import Compression
    from tritonpy_frontend_grpc.wire.head import CallHead, Headers

_UNCOUNTED = RequestMemory.UNCOUNTED


class WireInferCall(WireCall, InferCall):
    """One call: reads the message, submits it to the service, and sends the response."""

    responses = 0
    first_response = None
    over = False
    request = None
    memory: Reservation | None = None
    _frames: MessageReader | None = None
    _submitted = False  # the message was passed to the service
    _finishing: asyncio.Task[None] | None = None

    def __init__(self, service: InferenceService, head: CallHead) -> None:
        self.head = head
        self._service = service

    @abstractmethod
    def read(self) -> None:
        """Request the next part of the body, which is passed to `take`."""

    @abstractmethod
    def send_response(self, message: bytes) -> None:
        """Send the complete response with an uncompressed message."""

    @abstractmethod
    def send_compressed(self, encoding: str, frame: bytes) -> None:
        """Send the complete response with a framed message, which may be compressed."""

    @abstractmethod
    def send_refusal(self, trailers: Headers) -> None:
        """Send a response without a message."""

    def take(self, part: bytes | memoryview, more: bool) -> None:
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
                    self.begin(MessageFrame(compressed, message))
                else:
                    self.submit(message)
                return
        self._collect(bytes(part), more)

    def begin(self, frame: MessageFrame) -> None:
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

    def leave(self) -> None:
        """Cancel the call: the client has disconnected."""
        if not self.over:
            self._stop()
            self.status = CANCELLED
            self.done()

    def expire(self) -> None:
        if not self.over:
            self._stop()
            self.fail(DeadlineExceeded())

    def finish(self, result: bytes | TritonError) -> None:
        if self.memory is not None:
            self.memory = None  # the message is no longer needed
        if not isinstance(result, bytes):
            self.fail(result)
        elif len(result) > _UNCOUNTED and not self.admits(result):
            self.fail(self._service.memory.refusal(len(result)))
        elif self.compression is not None:
            self._finishing = asyncio.create_task(self._finish_compressed(result, self.compression))
        else:
            self.send_response(result)
            self.done()

    def fail(self, error: TritonError) -> None:
        """End the call with an error status."""
        self.over = True
        self.status, trailers = status_and_trailers(error)
        self.send_refusal(trailers)
        self.done()

    def admits(self, result: bytes) -> bool:
        """Reserve memory for a response that may wait for the client.

        Return False if the request memory is full.
        """
        return True

    def reserve(self, nbytes: int) -> bool:
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
        return self.reserve(length)

    def _collect(self, part: bytes, more: bool) -> None:
        if self._frames is None:
            self._frames = MessageReader(self._service.max_message)
        self._frames.feed(part)
        if not self.reserve(self._frames.unread):
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
            self.begin(frame)
        elif more:
            self.read()
        elif self._frames.partial:
            self.fail(Internal(INCOMPLETE))
        else:
            self.fail(Unsupported(NO_MESSAGE))

    def _stop(self) -> None:
        if self._submitted:
            self._service.cancel(self)
        self.over = True

    async def _finish_compressed(self, result: bytes, compression: Compression) -> None:
        frame = await frame_message(result, compression)
        self.send_compressed(compression.name, frame)
        self.done()
