"""Checks of the content-length of bodies."""

from __future__ import annotations

from collections.abc import Callable

from tritonpy_frontend_h2.http2.calls import Receiver


class LengthCheckedReceiver(Receiver):
    """Passes a body of `length` bytes to `receiver`.

    Calls `refuse`, which ends the stream, on a mismatch.
    """

    __slots__ = ("_left", "_receiver", "_refuse")

    def __init__(self, receiver: Receiver, length: int, refuse: Callable[[], None]) -> None:
        self._receiver = receiver
        self._left = length
        self._refuse = refuse

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        if self._fits(len(data), ended):
            self._receiver.data(data, ended)

    def body_buffer(self) -> memoryview | None:
        return self._receiver.body_buffer()

    def body_buffer_updated(self, count: int, ended: bool) -> None:
        if self._fits(count, ended):
            self._receiver.body_buffer_updated(count, ended)

    def reset(self) -> None:
        self._receiver.reset()

    def resume(self) -> None:
        self._receiver.resume()

    def _fits(self, count: int, ended: bool) -> bool:
        self._left -= count
        fits = not self._left if ended else self._left >= 0
        if not fits:
            self._refuse()
        return fits
