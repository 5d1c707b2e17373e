"""The short way of ModelInfer: no task, no coroutine, no future of the event loop."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING

from tritonpy import Internal, RequestMemory, TritonError, Unsupported
from tritonpy_frontend_grpc.call import InferCall
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.unpacking import PACKED
from tritonpy_frontend_grpc.wire.carried_call import CANCELLED, INCOMPLETE, MORE_MESSAGES, NO_MESSAGE, CarriedCall
from tritonpy_frontend_grpc.wire.compression import framed
from tritonpy_frontend_grpc.wire.frames import PREFIX, Frame, Frames, check_length
from tritonpy_frontend_grpc.wire.replies import failed

if TYPE_CHECKING:
    from tritonpy import Reservation
    from tritonpy_frontend_grpc.service import InferenceService
    from tritonpy_frontend_grpc.wire.compression import Compression
    from tritonpy_frontend_grpc.wire.head import Head, Headers

_UNCOUNTED = RequestMemory.UNCOUNTED


class CarriedInferCall(CarriedCall, InferCall):
    """One call: reads its message, hands it over, and sends the answer."""

    answers = 0
    first = None
    over = False
    request = None
    memory: Reservation | None = None
    _frames: Frames | None = None
    _begun = False  # the message is the service's
    _finishing: asyncio.Task[None] | None = None

    def __init__(self, service: InferenceService, head: Head) -> None:
        self.head = head
        self._service = service

    @abstractmethod
    def read(self) -> None:
        """Have the next part of the body given to `take`."""

    @abstractmethod
    def send_answer(self, message: bytes) -> None:
        """Send the whole answer, its message not compressed."""

    @abstractmethod
    def send_packed(self, encoding: str, frame: bytes) -> None:
        """Send the whole answer, whose framed message may be compressed."""

    @abstractmethod
    def send_refusal(self, trailers: Headers) -> None:
        """Send an answer without a message."""

    def take(self, part: bytes | memoryview, more: bool) -> None:
        """Take the next part of the body; `more` says whether another one follows. What follows a message that was handed over is dropped."""
        if self.over or self._begun:
            return
        if self._frames is None and len(part) >= PREFIX.size:
            packed, length = PREFIX.unpack_from(part)
            if PREFIX.size + length == len(part):
                if length > self._service.unchecked and not self._fits(length):
                    return
                message = bytes(part[PREFIX.size :])
                if packed or message[:1] in PACKED:
                    self.begin(Frame(packed, message))
                else:
                    self.hand_over(message)
                return
        self._collect(bytes(part), more)

    def begin(self, frame: Frame) -> None:
        """Hand over the message of a frame, which may be compressed."""
        try:
            message = self.unframed(frame)
        except TritonError as error:
            self.fail(error)
            return
        self.hand_over(message)

    def hand_over(self, message: bytes) -> None:
        """Pass the message to the service."""
        self._begun = True
        self._service.infer(message, self)

    def leave(self) -> None:
        """Take note that the client left."""
        if not self.over:
            self._stop()
            self.status = CANCELLED
            self.done()

    def expire(self) -> None:
        if not self.over:
            self._stop()
            self.fail(DeadlineExceeded())

    def finish(self, answer: bytes | TritonError) -> None:
        if self.memory is not None:
            self.memory = None  # the message is not needed any more
        if not isinstance(answer, bytes):
            self.fail(answer)
        elif len(answer) > _UNCOUNTED and not self.admits(answer):
            self.fail(self._service.memory.refusal(len(answer)))
        elif self.compression is not None:
            self._finishing = asyncio.create_task(self._finish_compressed(answer, self.compression))
        else:
            self.send_answer(answer)
            self.done()

    def fail(self, error: TritonError) -> None:
        """Send how the call ended."""
        self.over = True
        self.status, trailers = failed(error)
        self.send_refusal(trailers)
        self.done()

    def admits(self, answer: bytes) -> bool:
        """Return whether there is memory for an answer, which may have to wait for the client."""
        return True

    def reserve(self, nbytes: int) -> bool:
        """Reserve memory for so much of the message; if there is none, fail and return False."""
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
            self._frames = Frames(self._service.max_message)
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
        if self._begun:
            self._service.cancel(self)
        self.over = True

    async def _finish_compressed(self, answer: bytes, compression: Compression) -> None:
        frame = await framed(answer, compression)
        self.send_packed(compression.name, frame)
        self.done()
