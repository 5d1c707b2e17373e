from __future__ import annotations

import gc
import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_ipc import Frame, ProtocolError
from tritonpy_ipc.frame import ALIGNMENT, FrameReader, aligned, encode

from .exchange import descriptors

NOTHING = np.empty(0, np.uint8)
WORDS = st.lists(st.integers(0, 2**64 - 1), max_size=9)
EXTRAS = st.dictionaries(
    st.text(max_size=3), st.none() | st.integers() | st.text(max_size=5), max_size=3
)


def with_json(text: bytes) -> Frame:
    return Frame(1, (), text, NOTHING, ())


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 16), (15, 16), (16, 16), (17, 32)])
def test_sizes_are_rounded_up_to_the_alignment(size: int, expected: int) -> None:
    assert aligned(size) == expected


@given(
    st.lists(st.tuples(st.integers(0, 255), WORDS, EXTRAS, st.binary(max_size=50))),
    st.lists(st.integers(0, 400)),
)
def test_frames_are_decoded_for_any_split_of_the_stream(drawn: list, cuts: list[int]) -> None:
    padded = [
        (*rest, payload + bytes(aligned(len(payload)) - len(payload))) for *rest, payload in drawn
    ]
    data = b"".join(
        encode(kind, words, extras, [payload], len(payload))
        for kind, words, extras, payload in padded
    )
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    reader, frames = FrameReader(), []
    for start, stop in pairwise(places):
        frames += reader.feed(data[start:stop])
    assert [
        (f.kind, list(f.words), f.extras, f.payload.tobytes(), segment, used)
        for f, segment, used in frames
    ] == [(*each, 0, 0) for each in padded]
    assert [frame.has_extras for frame, _, _ in frames] == [
        bool(extras) for _, _, extras, _ in padded
    ]


@given(st.binary(min_size=1, max_size=40), WORDS)
def test_the_bytes_of_tensors_are_aligned(payload: bytes, words: list[int]) -> None:
    payload += bytes(aligned(len(payload)) - len(payload))
    one = encode(1, words, {"a": 1}, [payload], len(payload))
    for frame, _, _ in FrameReader().feed(one + one):
        assert frame.payload.ctypes.data % ALIGNMENT == 0


def test_a_frame_may_have_many_words() -> None:
    words = list(range(100_001))
    ((frame, _, _),) = FrameReader().feed(encode(1, words, {}, (), 0))
    assert list(frame.words) == words


@pytest.mark.parametrize("text", [b"{", b"[" * 100_000, b"\xff\xfe", b'{"a": 1}}', b"\x00{}"])
def test_invalid_json_is_a_protocol_error(text: bytes) -> None:
    with pytest.raises(ProtocolError, match="a frame of kind 1 has invalid JSON"):
        _ = with_json(text).extras


@pytest.mark.parametrize("text", [b"[]", b"1", b'"a"', b"null"])
def test_json_that_is_not_an_object_is_a_protocol_error(text: bytes) -> None:
    with pytest.raises(ProtocolError, match="is not an object"):
        _ = with_json(text).extras


@pytest.mark.parametrize("place", [4, 8, 12])  # words, JSON, tensors
def test_an_invalid_length_is_refused_before_its_bytes_arrive(place: int) -> None:
    header = bytearray(encode(1, (), {}, (), 0))
    header[place : place + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(ProtocolError, match="invalid length"):
        FrameReader().feed(bytes(header))


def test_a_frame_without_the_descriptors_that_it_announces_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="descriptors that were not received"):
        FrameReader().feed(encode(1, (), {}, (), 0, descriptors=1))


def test_descriptors_go_to_the_frames_that_announce_them_in_order() -> None:
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)]
    reader = FrameReader()
    data = b"".join(
        encode(kind, (), {}, (), 0, descriptors=count) for kind, count in enumerate((1, 0, 2))
    )
    frames = [frame for frame, _, _ in reader.feed(data, files)]
    assert [frame.descriptors for frame in frames] == [(files[0],), (), (files[1], files[2])]


def test_descriptors_that_are_not_taken_are_closed_with_their_frame() -> None:
    before = descriptors()
    frames = FrameReader().feed(
        encode(1, (), {}, (), 0, descriptors=1), [os.open(os.devnull, os.O_RDONLY)]
    )
    assert descriptors() == before + 1
    del frames
    gc.collect()
    assert descriptors() == before


def test_descriptors_that_are_taken_outlive_their_frame() -> None:
    file = os.open(os.devnull, os.O_RDONLY)
    ((frame, _, _),) = FrameReader().feed(encode(1, (), {}, (), 0, descriptors=1), [file])
    assert frame.take_descriptors() == (file,)
    assert frame.take_descriptors() == ()
    del frame
    os.close(file)  # raises if it is already closed


def test_frames_before_a_broken_one_leave_no_descriptor_behind() -> None:
    before = descriptors()
    good, bad = encode(1, (), {}, (), 0, descriptors=1), encode(1, (), {}, (), 0, descriptors=1)
    with pytest.raises(ProtocolError):
        FrameReader().feed(good + bad, [os.open(os.devnull, os.O_RDONLY)])
    gc.collect()
    assert descriptors() == before
