"""The fast path of ModelInfer on an HTTP/2 stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tritonpy import Internal, TritonError, Unsupported
from tritonpy_frontend_grpc.wire.infer_call import WireInferCall
from tritonpy_frontend_grpc.wire.message_frames import PREFIX, check_length, prefix
from tritonpy_frontend_grpc.wire.response_headers import compressed_headers
from tritonpy_frontend_grpc.wire.wire_call import INCOMPLETE, MORE_MESSAGES
from tritonpy_frontend_h2.header_blocks import END, START, refusal_block, response_head_block
from tritonpy_frontend_h2.long_message import LongMessage, is_long
from tritonpy_http2 import Receiver

if TYPE_CHECKING:
    from tritonpy import ClientMemory
    from tritonpy_frontend_grpc.service import InferenceService
    from tritonpy_frontend_grpc.wire.head import CallHead, Headers
    from tritonpy_http2 import Http2CallStream


class H2InferCall(WireInferCall, Receiver):
    """One call on its stream.

    The complete response waits on the stream if the client does not read it.
    """

    _long_message: LongMessage | None = None  # set if the message is long enough for its own buffer

    def __init__(self, service: InferenceService, head: CallHead, stream: Http2CallStream) -> None:
        super().__init__(service, head)
        self._stream = stream

    def read(self) -> None:
        """Do nothing: the stream delivers data itself."""

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        if self._long_message is not None:
            self._add(self._long_message, data, ended)
        elif not ended and self._frames is None and is_long(data) and not (self.over or self._submitted):
            self._allocate(data)
        else:
            self.take(data, not ended)

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
        self.leave()

    def account(self) -> ClientMemory | None:
        account: ClientMemory | None = self._stream.account  # type: ignore[assignment]  # the type that the server passed in
        return account

    def admits(self, result: bytes) -> bool:
        return self._stream.admits(len(result))

    def send_response(self, message: bytes) -> None:
        self._stream.send(START, (prefix(message), message), END)

    def send_compressed(self, encoding: str, frame: bytes) -> None:
        self._stream.send(response_head_block(compressed_headers(encoding)), (frame,), END)

    def send_refusal(self, trailers: Headers) -> None:
        self._stream.send(None, (), refusal_block(trailers))

    def _allocate(self, start: bytes | memoryview) -> None:
        try:
            check_length(int.from_bytes(start[1 : PREFIX.size], "big"), self._service.max_message)
            message = LongMessage(start)
        except TritonError as error:
            self.fail(error)
            return
        if self.reserve(message.filled_bytes):
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
        if not self.reserve(message.filled_bytes):
            self._long_message = None
        elif not message.missing:
            self._long_message = None
            self.begin(message.frame())
        elif ended:
            self.fail(Internal(INCOMPLETE))
