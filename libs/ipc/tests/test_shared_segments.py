from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tritonpy_ipc import ProtocolError
from tritonpy_ipc.shared_segments import KEEP_SEGMENTS, SegmentMap, SegmentPool, SharedSegment

from .exchange import descriptors, mappings

SMALL = 1 << 16


def transfer(segment: SharedSegment, segment_map: SegmentMap) -> None:
    """Transfer the descriptor of a segment as the socket does: once."""
    if segment.descriptor is not None:
        segment_map.map(segment.id, segment.descriptor)
        segment.close()


@contextmanager
def open_ends(keep: int = 4 * SMALL) -> Iterator[tuple[SegmentPool, SegmentMap]]:
    """Open both ends; check that neither leaks a descriptor or a mapping."""
    before = descriptors(), mappings()
    pool, segment_map = SegmentPool(keep), SegmentMap()
    yield pool, segment_map
    pool.close()
    segment_map.close()
    del pool, segment_map
    assert (descriptors(), mappings()) == before


def acquire_view(pool: SegmentPool, segment_map: SegmentMap, used: int = SMALL) -> np.ndarray:
    segment = pool.acquire(used)
    transfer(segment, segment_map)
    return segment_map.view(segment.id, used)


def test_the_map_reads_the_contents_of_a_segment() -> None:
    with open_ends() as (pool, segment_map):
        segment = pool.acquire(1000)
        segment.array[:1000] = 7
        transfer(segment, segment_map)
        assert segment_map.view(segment.id, 1000).tobytes() == b"\7" * 1000
        del segment


class Interface:
    """An array type of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


VIEWS: dict[str, Callable[[np.ndarray], Any]] = {
    "itself": lambda array: array,
    "slice": lambda array: array[5:10],
    "slice of a slice": lambda array: array[5:][:3],
    "element-wise rows": lambda array: list(array.reshape(4, -1))[2],
    "reshaped": lambda array: array.reshape(2, -1),
    "other type": lambda array: array.view(np.float32),
    "transposed": lambda array: array.reshape(2, -1).T,
    "frombuffer": lambda array: np.frombuffer(array, np.int16, 4),
    "frombuffer of a frombuffer": lambda array: np.frombuffer(
        np.frombuffer(array, np.int16), np.uint8
    ),
    "ndarray on a buffer": lambda array: np.ndarray((3,), np.float32, array, 8),
    "memoryview": memoryview,
    "slice of a memoryview": lambda array: memoryview(array)[3:5],
    "array of a memoryview": lambda array: np.asarray(memoryview(array)),
    "subclass": lambda array: array.view(np.recarray),
    "DLPack": np.from_dlpack,
    "array interface": lambda array: np.asarray(Interface(array)),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_a_segment_is_returned_when_the_last_view_is_gone(kind: str) -> None:
    with open_ends() as (pool, segment_map):
        array = acquire_view(pool, segment_map)
        views = [VIEWS[kind](array), VIEWS[kind](array)]
        del array
        assert not segment_map.returned
        views.pop()
        assert not segment_map.returned
        views.pop()
        assert list(segment_map.returned) == [1]


def test_the_last_view_may_be_freed_in_another_thread_which_calls_back() -> None:
    returned: list[int] = []
    pool, segment_map = SegmentPool(), SegmentMap(lambda: returned.append(1))
    held = [acquire_view(pool, segment_map)]
    thread = Thread(target=held.clear)
    thread.start()
    thread.join()
    assert (returned, list(segment_map.returned)) == ([1], [1])
    pool.close()
    segment_map.close()


def test_a_returned_segment_is_reused_without_mapping_it_again() -> None:
    with open_ends() as (pool, segment_map):
        del_me = acquire_view(pool, segment_map)
        address = del_me.ctypes.data
        del del_me
        pool.release([segment_map.returned.popleft()])
        again = acquire_view(pool, segment_map)
        assert again.ctypes.data == address
        assert mappings() >= 2
        del again


def test_a_segment_in_use_is_not_lent_again() -> None:
    with open_ends() as (pool, segment_map):
        first, second = acquire_view(pool, segment_map), acquire_view(pool, segment_map)
        first[:], second[:] = 1, 2
        assert (first.max(), second.min()) == (1, 2)
        del first, second


@pytest.mark.parametrize(
    ("requested", "size"),
    [(1, SMALL), (SMALL, SMALL), (SMALL + 1, 2 * SMALL), (5 * SMALL, 8 * SMALL)],
)
def test_segment_sizes_are_powers_of_two(requested: int, size: int) -> None:
    with open_ends() as (pool, _):
        assert pool.acquire(requested).size == size


def test_unused_memory_beyond_the_limit_is_discarded_at_both_ends_oldest_first() -> None:
    with open_ends(keep=2 * SMALL) as (pool, segment_map):
        before = mappings()
        arrays = [acquire_view(pool, segment_map) for _ in range(3)]
        assert mappings() == before + 6
        del arrays
        pool.release(sorted(segment_map.returned))
        assert mappings() == before + 6
        discarded = pool.discarded()
        assert discarded == [1]
        assert pool.discarded() == []
        segment_map.unmap(discarded)
        assert mappings() == before + 4


def test_a_segment_larger_than_the_limit_is_not_kept() -> None:
    with open_ends(keep=SMALL) as (pool, segment_map):
        before = mappings()
        array = acquire_view(pool, segment_map, 2 * SMALL)
        del array
        pool.release([1])
        segment_map.unmap(pool.discarded())
        assert mappings() == before


def test_a_segment_that_was_never_sent_leaves_no_descriptor() -> None:
    with open_ends(keep=0) as (pool, _):
        before = descriptors()
        pool.release([pool.acquire(1).id])
        assert pool.discarded() == [1]
        assert descriptors() == before


def test_unused_small_segments_are_discarded_for_their_descriptors() -> None:
    with open_ends(keep=1000 * SMALL) as (pool, segment_map):
        arrays = [acquire_view(pool, segment_map) for _ in range(KEEP_SEGMENTS + 3)]
        del arrays
        numbers = sorted(segment_map.returned)
        pool.release(numbers)
        discarded = pool.discarded()
        assert discarded == numbers[:3]
        segment_map.unmap(discarded)
        again = {pool.acquire(SMALL).id for _ in range(KEEP_SEGMENTS)}
        assert again == set(numbers[3:])


def test_memory_that_cannot_be_mapped_leaves_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    before = descriptors()
    with pytest.raises(OSError, match="Cannot allocate memory"):
        SegmentPool().acquire(1)
    assert descriptors() == before


def test_views_outlive_the_end_of_both_sides() -> None:
    before = mappings()
    pool, segment_map = SegmentPool(), SegmentMap(lambda: pytest.fail("no segment may be returned"))
    array = acquire_view(pool, segment_map)
    array[:] = 3
    pool.close()
    segment_map.close()
    assert array.min() == 3
    assert not segment_map.returned
    del array, pool
    assert mappings() == before


def test_an_unknown_segment_cannot_be_viewed() -> None:
    with open_ends() as (pool, segment_map):
        with pytest.raises(ProtocolError, match="segment 1 is not available"):
            segment_map.view(1, 1)
        array = acquire_view(pool, segment_map)
        with pytest.raises(ProtocolError, match="segment 1 is not available"):
            segment_map.view(1, 1)  # it is in use
        del array
        with pytest.raises(ProtocolError, match="segment 1 is not available"):
            segment_map.view(1, SMALL + 1)
        segment_map.view(1, SMALL)


def test_a_segment_cannot_be_mapped_twice() -> None:
    with open_ends() as (pool, segment_map):
        transfer(pool.acquire(1), segment_map)
        with pytest.raises(ProtocolError, match="segment 1 is already mapped"):
            segment_map.map(1, 0)


def test_a_descriptor_without_memory_is_a_protocol_error() -> None:
    read, write = os.pipe()
    with pytest.raises(ProtocolError, match="segment 1 cannot be mapped"):
        SegmentMap().map(1, read)
    os.close(read)
    os.close(write)


def test_a_segment_that_is_not_lent_cannot_be_returned() -> None:
    with open_ends() as (pool, _):
        pool.acquire(1)
        pool.release([1])
        for number in (1, 2, 2**63):
            with pytest.raises(ProtocolError, match="is not lent"):
                pool.release([number])


class SegmentMachine(RuleBasedStateMachine):
    """Acquire, free and return segments in any order: no byte has two users, and nothing leaks."""

    def __init__(self) -> None:
        super().__init__()
        self.before = descriptors(), mappings()
        self.pool, self.segment_map = SegmentPool(3 * SMALL), SegmentMap()
        self.held: list[tuple[int, np.ndarray]] = []
        self.count = 0

    @rule(size=st.sampled_from([1, SMALL, SMALL + 1, 4 * SMALL]))
    def acquire(self, size: int) -> None:
        self.count = (self.count + 1) % 251
        segment = self.pool.acquire(size)
        assert segment.size >= size
        segment.array[:size] = self.count
        transfer(segment, self.segment_map)
        self.held.append((self.count, self.segment_map.view(segment.id, size)))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        del self.held[data.draw(st.integers(0, len(self.held) - 1))]

    @rule()
    def hand_back(self) -> None:
        returned = self.segment_map.returned
        self.pool.release([returned.popleft() for _ in range(len(returned))])

    @rule()
    def unmap(self) -> None:
        self.segment_map.unmap(self.pool.discarded())

    @invariant()
    def everybody_reads_what_was_written_for_him(self) -> None:
        for number, array in self.held:
            assert array.min() == array.max() == number

    def teardown(self) -> None:
        self.pool.close()
        self.segment_map.close()
        self.held.clear()
        del self.pool, self.segment_map
        assert (descriptors(), mappings()) == self.before


TestSegments = SegmentMachine.TestCase
TestSegments.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
