from __future__ import annotations

import errno
import gc
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_ipc import Endpoint, Frame, Kind, ProtocolError, endpoint, shared_segments
from tritonpy_ipc.endpoint import PLAIN_DTYPES
from tritonpy_types import DTYPES, Tensor

from .exchange import (
    KIND,
    Pair,
    SampleTensor,
    carry,
    contents,
    descriptors,
    floats,
    mappings,
    pair,
    requests,
    tensor,
)

LARGE = 20_000  # floats: too many for a frame without a segment


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Any:
    gc.collect()
    before = descriptors(), mappings()
    yield
    gc.collect()
    assert (descriptors(), mappings()) == before


def rows_of(end: Endpoint, frame: Frame, at: int = 0) -> list[list[SampleTensor]]:
    return [list(row) for row in end.rows(frame, at, SampleTensor)[0]]


CUTS = st.lists(st.integers(0, 1 << 20), max_size=4)


@pytest.mark.parametrize("inline", [endpoint.INLINE, 15], ids=["in the frame", "in segments"])
def test_requests_and_responses_travel_both_ways_repeatedly(inline: int) -> None:
    @given(
        st.lists(st.tuples(requests(DTYPES), requests(PLAIN_DTYPES), CUTS), min_size=1, max_size=4)
    )
    def travel(exchanges: list[Any]) -> None:
        with pair() as both:
            for (rows, requested), (answers, _), cuts in exchanges:
                (frame,) = carry(
                    both.server.compose(KIND, [5], rows, requested, {"a": 1}), both.worker, cuts
                )
                assert (frame.kind, frame.words[0], frame.extras["a"]) == (KIND, 5, 1)
                got, got_requested = both.worker.rows(frame, 1, SampleTensor)
                assert (contents(got), got_requested) == (contents(rows), requested)
                (frame,) = carry(both.worker.compose(KIND, rows=answers), both.server, cuts)
                assert contents(rows_of(both.server, frame)) == contents(answers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endpoint, "INLINE", inline)
        travel()


def test_each_end_represents_bf16_in_its_own_type() -> None:
    value = tensor("BF16", (3,), b"\x80\x3f\x00\x40\x40\x40", DTYPES)
    with pair() as both:
        (frame,) = carry(both.server.compose(KIND, rows=[[value]]), both.worker)
        ((raw,),) = rows_of(both.worker, frame)
        assert raw.data.tolist() == [0x3F80, 0x4000, 0x4040]
        (frame,) = carry(both.worker.compose(KIND, rows=[[raw]]), both.server)
        ((back,),) = rows_of(both.server, frame)
        assert back.data.tolist() == [1, 2, 3]
        del frame, raw, back


def test_tensors_of_the_server_can_be_sent_directly() -> None:
    strings = Tensor.from_numpy("S", np.array([b"", b"abc"], np.object_))
    with pair() as both:
        (frame,) = carry(both.server.compose(KIND, rows=[[strings]]), both.worker)
        (frame,) = carry(both.worker.compose(KIND, rows=rows_of(both.worker, frame)), both.server)
        (row,), _ = both.server.rows(frame, 0, Tensor)
        assert row[0].strings() == [b"", b"abc"]
        del frame, row


def test_a_small_frame_needs_no_shared_memory_and_a_large_one_is_written_once() -> None:
    with pair() as both:
        data, fresh = both.server.compose(KIND, rows=[[floats(endpoint.INLINE // 4)]])
        assert (len(data) > endpoint.INLINE, fresh) == (True, [])
        data, fresh = both.server.compose(KIND, rows=[[floats(endpoint.INLINE // 4 + 1)]])
        assert (len(data) < 500, len(fresh)) == (True, 1)
        os.close(fresh[0])


def test_frames_of_many_sizes_use_the_same_memory_again_and_again() -> None:
    with pair() as both:
        for number in range(50):
            (frame,) = carry(both.server.compose(KIND, rows=[[floats(LARGE, number)]]), both.worker)
            ((got,),) = rows_of(both.worker, frame)
            assert got.data[-1] == number
            (frame,) = carry(both.worker.compose(KIND, rows=[[got]]), both.server)
            ((back,),) = rows_of(both.server, frame)
            assert back.data[0] == number
            del frame, got, back
            assert mappings() <= 2 * 2 * 2


def test_memory_in_use_is_not_overwritten() -> None:
    with pair() as both:
        kept = []
        for number in range(20):
            (frame,) = carry(
                both.server.compose(KIND, rows=[[floats(LARGE, number)]] * 2), both.worker
            )
            kept.append(rows_of(both.worker, frame)[number % 2][0])
            both.settle()
        assert [each.data.tolist() for each in kept] == [[number] * LARGE for number in range(20)]
        del frame, kept


def test_returns_are_sent_with_the_next_frame_or_alone() -> None:
    with pair() as both:
        carry(both.server.compose(KIND, rows=[[floats(LARGE)]]), both.worker)
        gc.collect()
        assert both.returned == {"server": 0, "worker": 1}
        (frame,) = carry(both.worker.compose(KIND), both.server)
        assert (frame.kind, both.worker.compose_returns()) == (KIND, b"")
        carry(both.server.compose(KIND, rows=[[floats(LARGE)]]), both.worker)
        gc.collect()
        assert both.server.feed(both.worker.compose_returns()) == []
        assert both.worker.compose_returns() == b""
        assert mappings() == 2


def test_unused_memory_is_unmapped_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_segments.SegmentPool.__init__, "__defaults__", (0,))
    with pair() as both:
        carry(both.server.compose(KIND, rows=[[floats(LARGE)]]), both.worker)
        gc.collect()
        assert mappings() == 2
        both.settle()
        assert mappings() == 0


def test_descriptors_travel_with_a_frame_that_has_no_rows() -> None:
    with pair() as both:
        read, write = os.pipe()
        (frame,) = carry(
            both.server.compose(KIND, extras={"a": 1}, descriptors=[read]), both.worker
        )
        (taken,) = frame.take_descriptors()
        os.write(write, b"x")
        assert os.read(taken, 1) == b"x"
        os.close(taken)
        os.close(write)


def test_descriptors_that_no_frame_took_are_closed_at_the_end() -> None:
    end = Endpoint()
    assert end.feed(b"", [os.open(os.devnull, os.O_RDONLY)]) == []
    end.close()


def failing(kind: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return arguments with which a frame cannot be composed."""
    if kind == "no memory":
        monkeypatch.setattr(os, "ftruncate", _full)
        return {"rows": [[floats(LARGE)]]}
    if kind == "words":
        return {"words": [-1], "rows": [[floats(3)]]}
    if kind == "words with a segment":
        return {"words": [-1], "rows": [[floats(LARGE)]]}
    if kind == "no JSON":
        return {"extras": {"a": object()}, "rows": [[floats(3)]]}
    if kind == "no JSON with a segment":
        return {"extras": {"a": object()}, "rows": [[floats(LARGE)]]}
    return {"rows": [[floats(3)], [SampleTensor("T", "FP32", (3,), None)]]}  # type: ignore[arg-type]


def _full(*_arguments: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "kind",
    ["no memory", "words", "words with a segment", "no JSON", "no JSON with a segment", "no data"],
)
def test_a_frame_that_cannot_be_composed_leaves_the_connection_usable(kind: str) -> None:
    with pair() as both:
        with pytest.MonkeyPatch.context() as patch:
            what = failing(kind, patch)
            with pytest.raises(Exception, match=r"."):
                both.server.compose(KIND, **what)
        for size in (3, LARGE):
            (frame,) = carry(both.server.compose(KIND, rows=[[floats(size)]]), both.worker)
            ((got,),) = rows_of(both.worker, frame)
            assert got.data.shape == (size,)
            del frame, got
            both.settle()
        assert mappings() == 2, "memory that was not sent is used again"


def test_a_full_disk_fails_only_one_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with pair() as both:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "posix_fallocate", _full)
            with pytest.raises(OSError, match="No space left on device"):
                both.worker.compose(KIND, rows=[[floats(LARGE)]])
        (frame,) = carry(both.worker.compose(KIND, rows=[[floats(LARGE, 2)]]), both.server)
        ((got,),) = rows_of(both.server, frame)
        assert got.data.max() == 2
        del frame, got


def test_forgotten_signatures_are_announced_again() -> None:
    with pair() as both:
        for start in (0, 3000, 6000):
            rows = [[tensor("INT8", (0, size), b"", DTYPES)] for size in range(start, start + 3000)]
            (frame,) = carry(both.server.compose(KIND, rows=rows), both.worker)
            assert contents(rows_of(both.worker, frame)) == contents(rows)
        (frame,) = carry(both.server.compose(KIND, rows=rows), both.worker)
        assert not frame.has_extras


RETURN, UNKNOWN, BEYOND = int(Kind.RETURN), 99, 2**63


@pytest.mark.parametrize(
    "words",
    [[], [1], [2, 1], [BEYOND, 1], [1, UNKNOWN]],
    ids=["empty", "short", "shorter", "beyond", "not lent"],
)
def test_a_broken_return_is_a_protocol_error(words: list[int]) -> None:
    with pair() as both, pytest.raises(ProtocolError):
        both.server.feed(both.worker.compose(RETURN, words)[0])


def test_a_segment_returned_twice_is_a_protocol_error() -> None:
    with pair() as both:
        carry(both.server.compose(KIND, rows=[[floats(LARGE)]]), both.worker)
        gc.collect()
        returned = both.worker.compose_returns()
        assert both.server.feed(returned) == []
        with pytest.raises(ProtocolError, match="is not lent"):
            both.server.feed(returned)


def test_a_segment_without_a_descriptor_is_a_protocol_error() -> None:
    with pair() as both:
        data, fresh = both.worker.compose(KIND, rows=[[floats(LARGE)]])
        for descriptor in fresh:
            os.close(descriptor)
        with pytest.raises(ProtocolError):
            both.server.feed(data)


WORDS = [number.to_bytes(8, "little") for number in (0, 1, 7, 2**20, 2**32, 2**63, 2**64 - 1)]
MUTATIONS = st.tuples(
    st.sampled_from(["replace", "word", "cut", "insert", "delete"]),
    st.integers(0, 1 << 20),
    st.sampled_from(WORDS) | st.binary(min_size=1, max_size=40),
)


@given(st.lists(MUTATIONS, min_size=1, max_size=4))
def test_invalid_data_of_every_kind_raises_only_a_protocol_error(mutations: list[Any]) -> None:
    with pair() as both:
        stream, files = valid(both)
        for how, place, garbage in mutations:
            stream = mutate(stream, how, place % len(stream), garbage)
        listen(both.server, stream, files)


def valid(both: Pair) -> tuple[bytes, list[int]]:
    """Return valid output of a worker, with memory and descriptors."""
    stream, files = b"", []
    for what in (
        {"extras": {"pid": 1}},
        {
            "words": [1, 1, 2],
            "rows": [[floats(3)], [floats(3)], [tensor("BYTES", (1,), b"\1\0\0\0x", PLAIN_DTYPES)]],
        },
        {"words": [1], "rows": [[floats(LARGE)]], "extras": {"errors": {"0": [1, "x"]}}},
        {"words": [1], "rows": [[floats(LARGE)], []], "requested": [("a",), None]},
        {"words": [1], "descriptors": [os.open(os.devnull, os.O_RDONLY)]},
    ):
        some, fresh = both.worker.compose(KIND, **what)  # type: ignore[arg-type]
        stream += some
        files += fresh
    return stream, files


def mutate(stream: bytes, how: str, place: int, garbage: bytes) -> bytes:
    if how == "word":
        place -= place % 8
        return stream[:place] + garbage[:8] + stream[place + len(garbage[:8]) :]
    if how == "replace":
        return stream[:place] + garbage + stream[place + len(garbage) :]
    if how == "insert":
        return stream[:place] + garbage + stream[place:]
    if how == "delete":
        return stream[:place] + stream[place + len(garbage) :] + b"\0"
    return stream[: place + 1]


def listen(end: Endpoint, stream: bytes, files: list[int]) -> None:
    try:
        for frame in end.feed(stream, files):
            _ = frame.extras
            for at in range(min(len(frame.words), 3)):
                end.rows(frame, at, SampleTensor)
    except ProtocolError:
        pass
