"""What all gRPC calls through Envoy have in common: metadata, deadline, and how they ended."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tritonpy import Internal, now_ns
from tritonpy_frontend_envoy.grpc.head import metadata_of, timeout_ns
from tritonpy_frontend_grpc.call import Call

if TYPE_CHECKING:
    from tritonpy_frontend_envoy.grpc.compression import Compression
    from tritonpy_frontend_envoy.grpc.frames import Frame
    from tritonpy_frontend_grpc.call import Metadata

CANCELLED = 1


class CarriedCall(Call):
    """A call with the scope that ASGI made of it; `headers` are the same as a dictionary. `status` is the number of the one that it ended with."""

    status = 0
    compression: Compression | None = None  # of its answers
    scope: Any
    headers: dict[bytes, bytes]
    _deadline_ns = 0
    _expiry: asyncio.TimerHandle | None = None
    _metadata: Metadata | None = None
    _callbacks: tuple[Callable[[], None], ...] = ()

    def metadata(self) -> Metadata:
        """Return the client's metadata. Raises Malformed where it is not gRPC's."""
        if self._metadata is None:
            self._metadata = metadata_of(self.scope["headers"])
        return self._metadata

    def deadline_ns(self) -> int:
        return self._deadline_ns

    def when_done(self, callback: Callable[[], None]) -> None:
        self._callbacks = (*self._callbacks, callback)

    def limit_time(self) -> None:
        """Let the call expire when the time is over that its client gives it."""
        left_ns = timeout_ns(self.headers)
        if left_ns is not None:
            self._deadline_ns = now_ns() + left_ns
            self._expiry = asyncio.get_running_loop().call_later(left_ns / 1e9, self.expire)

    @abstractmethod
    def expire(self) -> None:
        """End the call: its client waits no longer."""

    def done(self) -> None:
        """Take note that the call is over."""
        if self._expiry is not None:
            self._expiry.cancel()
        for callback in self._callbacks:
            callback()

    def unframed(self, frame: Frame) -> bytes:
        """Return the message of a frame, still compressed if it came so. Raises Internal where nobody said how."""
        if frame.packed and (frame.packed != 1 or self.headers.get(b"grpc-encoding", b"identity") == b"identity"):
            raise Internal("a message is marked as compressed, and the call does not say how")
        return frame.message
