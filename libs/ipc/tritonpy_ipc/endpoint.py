"""One end of a connection, without the socket."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .blocks import Block
from .frame import Frame, FrameReader, ProtocolError, encode
from .kinds import Kind
from .shared_segments import SegmentMap, SegmentPool
from .signatures import RequestedOutputs, SignatureReader, SignatureWriter
from .tensors import Row, copy_into, pack, unpack

INLINE = 1 << 15  # bytes of tensors sent in the frame itself; above, a shared segment is cheaper
# Array types for an interpreter that has numpy only; BF16 is raw.
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
    """Encodes and decodes frames.

    One thread may compose while another feeds, but no two threads may do the same at once. Frames
    must be sent in the order in which `compose` returns them. `on_return` is called, from any
    thread, when a segment of the other end is free again. The next frame returns it, or
    `compose_returns` does.
    """

    def __init__(
        self, dtypes: Mapping[str, Any] = PLAIN_DTYPES, on_return: Callable[[], None] | None = None
    ) -> None:
        self._reader = FrameReader()
        self._signature_reader = SignatureReader(dtypes)
        self._signature_writer = SignatureWriter()
        self._segment_pool = SegmentPool()
        self._segment_map = SegmentMap(on_return)

    def compose(
        self,
        kind: int,
        words: Sequence[int] = (),
        rows: Sequence[Row] | None = None,
        requested: Sequence[RequestedOutputs] | None = None,
        extras: Mapping[str, Any] | None = None,
        descriptors: Sequence[int] = (),
    ) -> tuple[bytes, list[int]]:
        """Return the bytes of a frame and the descriptors to send with its first byte.

        `rows` are the tensors of requests or responses, `requested` the outputs that each row
        requests. The returned descriptors are those of `descriptors`, which only a frame without
        `rows` may have, or those of new segments. The caller sends and then closes them. Raises
        `OSError` if shared memory cannot be allocated. After any exception, nothing is to be sent,
        and the next frame is composed as if this one had not been tried.
        """
        new_signatures: dict[str, Any] = {}
        parts: list[Any] = []
        size = 0
        if rows is not None:
            self._signature_writer.begin()
            groups, parts, size = pack(
                rows, requested or [None] * len(rows), self._signature_writer
            )
            words = [*words, *groups]
            new_signatures = self._signature_writer.new_signatures()
        if extras:
            new_signatures.update(extras)
        fresh = list(descriptors)
        if size <= INLINE:
            frame = encode(kind, words, new_signatures, parts, size, descriptors=len(fresh))
        else:
            frame, fresh = self._in_segment(kind, words, new_signatures, parts, size)
        if rows is not None:
            self._signature_writer.mark_sent()
        return self.compose_returns() + frame, fresh

    def compose_returns(self) -> bytes:
        """Return a frame that returns segments, or no bytes if there are none."""
        returned, discarded = self._segment_map.returned, self._segment_pool.discarded()
        if not returned and not discarded:
            return b""
        numbers = [returned.popleft() for _ in range(len(returned))]
        return encode(Kind.RETURN, [len(numbers), *numbers, *discarded], {}, (), 0)

    def feed(self, data: bytes | bytearray, descriptors: Sequence[int] = ()) -> list[Frame]:
        """Return the frames that `data` completes. Raises `ProtocolError`."""
        frames = []
        for frame, segment, used in self._reader.feed(data, descriptors):
            if segment:
                if frame.descriptors:
                    first, *others = frame.take_descriptors()
                    frame.descriptors = tuple(others)
                    try:
                        self._segment_map.map(segment, first)
                    finally:
                        os.close(first)
                frame.payload = self._segment_map.view(segment, used)
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
        make_row: Callable[[Block, int], Any] | None = None,
    ) -> tuple[list[Row], list[RequestedOutputs]]:
        """Return the tensors and requested outputs that `frame.words[at:]` describe.

        Call it once per frame, in order of arrival. Raises `ProtocolError`.
        """
        if frame.has_extras:
            self._signature_reader.learn(frame.extras)
        return unpack(frame.words, at, frame.payload, self._signature_reader, make, make_row)

    @property
    def unused_bytes(self) -> int:
        """Bytes of shared memory kept for the next frames."""
        return self._segment_pool.unused_bytes

    def close(self) -> None:
        """Free the shared memory that no view uses."""
        self._segment_pool.close()
        self._segment_map.close()
        for descriptor in self._reader.close():
            os.close(descriptor)

    def _in_segment(
        self,
        kind: int,
        words: Sequence[int],
        extras: dict[str, Any],
        parts: Sequence[Any],
        size: int,
    ) -> tuple[bytes, list[int]]:
        segment = self._segment_pool.acquire(size)
        try:
            copy_into(segment.array, parts)
            fresh = [] if segment.descriptor is None else [segment.descriptor]
            frame = encode(kind, words, extras, (), 0, (segment.id, size), len(fresh))
        except BaseException:  # it was not sent, so it will not be returned
            self._segment_pool.release((segment.id,))
            raise
        segment.descriptor = None
        return frame, fresh

    def _take_returns(self, words: Sequence[int]) -> None:
        if not words or words[0] >= len(words):
            raise ProtocolError("a return is broken")
        self._segment_pool.release(words[1 : 1 + words[0]])
        self._segment_map.unmap(words[1 + words[0] :])
