"""One end of the conversation, without the socket."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .blocks import Block
from .frame import Frame, FrameReader, ProtocolError, encode
from .kinds import Kind
from .parcels import Borrower, Lender
from .signatures import Known, Wants, Written
from .tensors import Row, copy_into, pack, unpack

INLINE = 1 << 15  # bytes of tensors that travel in the frame itself; above, a parcel is cheaper than the socket
# What data types look like to an interpreter that has numpy alone; BF16 is raw.
PLAIN_DTYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BF16": np.uint16,
    "BYTES": None,
}


class Endpoint:
    """Makes frames and understands them. One thread may compose while another feeds; no two do the same at once.

    What `compose` returns must be sent in that order. `on_return` is called, from any thread, when a parcel of the other
    side has become free here: the next frame takes it back, or `compose_returns` does.
    """

    def __init__(self, dtypes: Mapping[str, Any] = PLAIN_DTYPES, on_return: Callable[[], None] | None = None) -> None:
        self._reader = FrameReader()
        self._known = Known(dtypes)
        self._written = Written()
        self._lender = Lender()
        self._borrower = Borrower(on_return)

    def compose(
        self,
        kind: int,
        words: Sequence[int] = (),
        rows: Sequence[Row] | None = None,
        wants: Sequence[Wants] | None = None,
        extras: Mapping[str, Any] | None = None,
        descriptors: Sequence[int] = (),
    ) -> tuple[bytes, list[int]]:
        """Return the bytes of a frame and the descriptors to send with its first byte.

        The caller sends, then closes them: they are those of `descriptors`, which only a frame without `rows` may have, or those
        of new shared memory. `rows` are the tensors of requests or answers, `wants` what each row asks for. Raises OSError where
        shared memory cannot be had. Whatever it raises, nothing is to be sent, and the next frame is as if this one had not been tried.
        """
        news: dict[str, Any] = {}
        parts: list[Any] = []
        size = 0
        if rows is not None:
            self._written.begin()
            groups, parts, size = pack(rows, wants or [None] * len(rows), self._written)
            words = [*words, *groups]
            news = self._written.news()
        if extras:
            news.update(extras)
        fresh = list(descriptors)
        if size <= INLINE:
            frame = encode(kind, words, news, parts, size, descriptors=len(fresh))
        else:
            frame, fresh = self._in_parcel(kind, words, news, parts, size)
        if rows is not None:
            self._written.announced()
        return self.compose_returns() + frame, fresh

    def compose_returns(self) -> bytes:
        """Return a frame that hands parcels back; nothing where there are none."""
        returned, forgotten = self._borrower.returned, self._lender.forgotten()
        if not returned and not forgotten:
            return b""
        numbers = [returned.popleft() for _ in range(len(returned))]
        return encode(Kind.RETURN, [len(numbers), *numbers, *forgotten], {}, (), 0)

    def feed(self, data: bytes | bytearray, descriptors: Sequence[int] = ()) -> list[Frame]:
        """Return the frames that `data` completes. Raises ProtocolError."""
        frames = []
        for frame, parcel, used in self._reader.feed(data, descriptors):
            if parcel:
                if frame.descriptors:
                    first, *others = frame.take_descriptors()
                    frame.descriptors = tuple(others)
                    try:
                        self._borrower.map(parcel, first)
                    finally:
                        os.close(first)
                frame.payload = self._borrower.borrow(parcel, used)
            if frame.kind == Kind.RETURN:
                self._take_returns(frame.words)
            else:
                frames.append(frame)
        return frames

    def rows(
        self,
        frame: Frame,
        at: int,
        make: Callable[..., Any],
        place: Callable[[Block, int], Any] | None = None,
    ) -> tuple[list[Row], list[Wants]]:
        """Return the tensors that the words of `frame` from `at` on describe. Call it once, in the order of arrival. Raises ProtocolError."""
        if frame.has_extras:
            self._known.learn(frame.extras)
        return unpack(frame.words, at, frame.payload, self._known, make, place)

    @property
    def unused_bytes(self) -> int:
        """How much shared memory is kept for the next frames."""
        return self._lender.unused_bytes

    def close(self) -> None:
        """Free what no view holds."""
        self._lender.close()
        self._borrower.close()
        for descriptor in self._reader.close():
            os.close(descriptor)

    def _in_parcel(
        self, kind: int, words: Sequence[int], extras: dict[str, Any], parts: Sequence[Any], size: int
    ) -> tuple[bytes, list[int]]:
        parcel = self._lender.lend(size)
        try:
            copy_into(parcel.array, parts)
            fresh = [] if parcel.descriptor is None else [parcel.descriptor]
            frame = encode(kind, words, extras, (), 0, (parcel.id, size), len(fresh))
        except BaseException:  # it was not sent and will not come back
            self._lender.take_back((parcel.id,))
            raise
        parcel.descriptor = None
        return frame, fresh

    def _take_returns(self, words: Sequence[int]) -> None:
        if not words or words[0] >= len(words):
            raise ProtocolError("a return is broken")
        self._lender.take_back(words[1 : 1 + words[0]])
        self._borrower.forget(words[1 + words[0] :])
