"""The short way of ModelInfer: what a stream brings goes to the service, and one write takes the answer back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tritonpy import Internal, TritonError, Unsupported
from tritonpy_frontend_grpc.wire.carried_call import INCOMPLETE, MORE_MESSAGES
from tritonpy_frontend_grpc.wire.frames import PREFIX, check_length, prefix
from tritonpy_frontend_grpc.wire.infer_call import CarriedInferCall
from tritonpy_frontend_grpc.wire.replies import head_of
from tritonpy_frontend_h2.blocks import END, START, head_block, refusal_block
from tritonpy_frontend_h2.http2.calls import Receiver
from tritonpy_frontend_h2.long_message import LongMessage, is_long

if TYPE_CHECKING:
    from tritonpy import ClientMemory
    from tritonpy_frontend_grpc.service import InferenceService
    from tritonpy_frontend_grpc.wire.head import Head, Headers
    from tritonpy_frontend_h2.http2.calls import Stream


class H2InferCall(CarriedInferCall, Receiver):
    """One call on its stream. An answer that the client does not fetch waits there, whole: no other follows it."""

    _long: LongMessage | None = None  # the message, where its parts are to lie in one place from the beginning

    def __init__(self, service: InferenceService, head: Head, stream: Stream) -> None:
        super().__init__(service, head)
        self._stream = stream

    def read(self) -> None:
        """Do nothing: the stream brings what comes."""

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        if self._long is not None:
            self._add(self._long, data, ended)
        elif not ended and self._frames is None and is_long(data) and not (self.over or self._begun):
            self._make_room(data)
        else:
            self.take(data, not ended)

    def room(self) -> memoryview | None:
        return None if self._long is None else self._long.room()

    def filled(self, count: int, ended: bool) -> None:
        assert self._long is not None  # noqa: S101
        self._long.filled(count)
        if self._long.missing:
            self._go_on(self._long, ended)
        else:  # whoever reads to the message lets go of it only after this
            asyncio.get_running_loop().call_soon(self._let_go)

    def reset(self) -> None:
        self.leave()

    def account(self) -> ClientMemory | None:
        account: ClientMemory | None = self._stream.account  # type: ignore[assignment]  # as the server gave it
        return account

    def admits(self, answer: bytes) -> bool:
        return self._stream.admits(len(answer))

    def send_answer(self, message: bytes) -> None:
        self._stream.send(START, (prefix(message), message), END)

    def send_packed(self, encoding: str, frame: bytes) -> None:
        self._stream.send(head_block(head_of(encoding)), (frame,), END)

    def send_refusal(self, trailers: Headers) -> None:
        self._stream.send(None, (), refusal_block(trailers))

    def _make_room(self, start: bytes | memoryview) -> None:
        try:
            check_length(int.from_bytes(start[1 : PREFIX.size], "big"), self._service.max_message)
            message = LongMessage(start)
        except TritonError as error:
            self.fail(error)
            return
        if self.reserve(message.filled_bytes):
            self._long = message

    def _add(self, message: LongMessage, data: bytes | memoryview, ended: bool) -> None:
        if len(data) > message.missing:
            self.fail(Unsupported(MORE_MESSAGES))
        else:
            message.add(data)
            self._go_on(message, ended)

    def _let_go(self) -> None:
        if self._long is not None and not self.over:
            self._go_on(self._long, ended=False)

    def _go_on(self, message: LongMessage, ended: bool) -> None:
        if not self.reserve(message.filled_bytes):
            self._long = None
        elif not message.missing:
            self._long = None
            self.begin(message.frame())
        elif ended:
            self.fail(Internal(INCOMPLETE))
