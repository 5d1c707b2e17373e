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

from tritonpy.ipc import ProtocolError
from tritonpy.ipc.parcels import KEEP_PARCELS, Borrower, Lender, Parcel

from .exchange import descriptors, mappings

SMALL = 1 << 16


def pass_on(parcel: Parcel, borrower: Borrower) -> None:
    """Do what the socket does with a parcel's descriptor: send it, once."""
    if parcel.descriptor is not None:
        borrower.map(parcel.id, parcel.descriptor)
        parcel.close()


@contextmanager
def lending(keep: int = 4 * SMALL) -> Iterator[tuple[Lender, Borrower]]:
    """Open both sides; at the end neither has left a descriptor or a map behind."""
    before = descriptors(), mappings()
    lender, borrower = Lender(keep), Borrower()
    yield lender, borrower
    lender.close()
    borrower.close()
    del lender, borrower
    assert (descriptors(), mappings()) == before


def borrow(lender: Lender, borrower: Borrower, used: int = SMALL) -> np.ndarray:
    parcel = lender.lend(used)
    pass_on(parcel, borrower)
    return borrower.borrow(parcel.id, used)


def test_what_the_lender_writes_the_borrower_reads() -> None:
    with lending() as (lender, borrower):
        parcel = lender.lend(1000)
        parcel.array[:1000] = 7
        pass_on(parcel, borrower)
        assert borrower.borrow(parcel.id, 1000).tobytes() == b"\7" * 1000
        del parcel


class Interface:
    """Somebody else's array type."""

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
    "frombuffer of a frombuffer": lambda array: np.frombuffer(np.frombuffer(array, np.int16), np.uint8),
    "ndarray on a buffer": lambda array: np.ndarray((3,), np.float32, array, 8),
    "memoryview": memoryview,
    "slice of a memoryview": lambda array: memoryview(array)[3:5],
    "array of a memoryview": lambda array: np.asarray(memoryview(array)),
    "subclass": lambda array: array.view(np.recarray),
    "DLPack": np.from_dlpack,
    "array interface": lambda array: np.asarray(Interface(array)),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_a_parcel_comes_back_when_the_last_view_is_gone(kind: str) -> None:
    with lending() as (lender, borrower):
        array = borrow(lender, borrower)
        views = [VIEWS[kind](array), VIEWS[kind](array)]
        del array
        assert not borrower.returned
        views.pop()
        assert not borrower.returned
        views.pop()
        assert list(borrower.returned) == [1]


def test_the_last_view_may_go_in_another_thread_and_tells_who_waits_for_it() -> None:
    told: list[int] = []
    lender, borrower = Lender(), Borrower(lambda: told.append(1))
    held = [borrow(lender, borrower)]
    thread = Thread(target=held.clear)
    thread.start()
    thread.join()
    assert (told, list(borrower.returned)) == ([1], [1])
    lender.close()
    borrower.close()


def test_a_parcel_is_lent_again_when_it_is_back_and_is_not_mapped_anew() -> None:
    with lending() as (lender, borrower):
        del_me = borrow(lender, borrower)
        address = del_me.ctypes.data
        del del_me
        lender.take_back([borrower.returned.popleft()])
        again = borrow(lender, borrower)
        assert again.ctypes.data == address
        assert mappings() >= 2
        del again


def test_a_parcel_that_is_out_is_not_lent_to_a_second_one() -> None:
    with lending() as (lender, borrower):
        first, second = borrow(lender, borrower), borrow(lender, borrower)
        first[:], second[:] = 1, 2
        assert (first.max(), second.min()) == (1, 2)
        del first, second


@pytest.mark.parametrize(
    ("asked", "size"), [(1, SMALL), (SMALL, SMALL), (SMALL + 1, 2 * SMALL), (5 * SMALL, 8 * SMALL)]
)
def test_parcels_come_in_powers_of_two(asked: int, size: int) -> None:
    with lending() as (lender, _):
        assert lender.lend(asked).size == size


def test_unused_memory_beyond_the_limit_is_given_up_at_both_ends_oldest_first() -> None:
    with lending(keep=2 * SMALL) as (lender, borrower):
        before = mappings()
        arrays = [borrow(lender, borrower) for _ in range(3)]
        assert mappings() == before + 6
        del arrays
        lender.take_back(sorted(borrower.returned))
        assert mappings() == before + 6
        forgotten = lender.forgotten()
        assert forgotten == [1]
        assert lender.forgotten() == []
        borrower.forget(forgotten)
        assert mappings() == before + 4


def test_a_parcel_larger_than_the_limit_is_not_kept() -> None:
    with lending(keep=SMALL) as (lender, borrower):
        before = mappings()
        array = borrow(lender, borrower, 2 * SMALL)
        del array
        lender.take_back([1])
        borrower.forget(lender.forgotten())
        assert mappings() == before


def test_a_parcel_that_was_never_sent_leaves_no_descriptor() -> None:
    with lending(keep=0) as (lender, _):
        before = descriptors()
        lender.take_back([lender.lend(1).id])
        assert lender.forgotten() == [1]
        assert descriptors() == before


def test_many_small_parcels_that_are_not_used_are_given_up_for_their_descriptors() -> None:
    with lending(keep=1000 * SMALL) as (lender, borrower):
        arrays = [borrow(lender, borrower) for _ in range(KEEP_PARCELS + 3)]
        del arrays
        numbers = sorted(borrower.returned)
        lender.take_back(numbers)
        forgotten = lender.forgotten()
        assert forgotten == numbers[:3]
        borrower.forget(forgotten)
        again = {lender.lend(SMALL).id for _ in range(KEEP_PARCELS)}
        assert again == set(numbers[3:])


def test_memory_that_cannot_be_mapped_leaves_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    before = descriptors()
    with pytest.raises(OSError, match="Cannot allocate memory"):
        Lender().lend(1)
    assert descriptors() == before


def test_views_outlive_the_end_of_both_sides() -> None:
    before = mappings()
    lender, borrower = Lender(), Borrower(lambda: pytest.fail("nobody is left to be told"))
    array = borrow(lender, borrower)
    array[:] = 3
    lender.close()
    borrower.close()
    assert array.min() == 3
    assert not borrower.returned
    del array, lender
    assert mappings() == before


def test_what_is_not_there_cannot_be_borrowed() -> None:
    with lending() as (lender, borrower):
        with pytest.raises(ProtocolError, match="parcel 1 is not there"):
            borrower.borrow(1, 1)
        array = borrow(lender, borrower)
        with pytest.raises(ProtocolError, match="parcel 1 is not there"):
            borrower.borrow(1, 1)  # it is borrowed
        del array
        with pytest.raises(ProtocolError, match="parcel 1 is not there"):
            borrower.borrow(1, SMALL + 1)
        borrower.borrow(1, SMALL)


def test_a_parcel_is_new_once() -> None:
    with lending() as (lender, borrower):
        pass_on(lender.lend(1), borrower)
        with pytest.raises(ProtocolError, match="parcel 1 is not new"):
            borrower.map(1, 0)


def test_what_is_no_memory_is_a_protocol_error() -> None:
    read, write = os.pipe()
    with pytest.raises(ProtocolError, match="parcel 1 cannot be mapped"):
        Borrower().map(1, read)
    os.close(read)
    os.close(write)


def test_what_was_not_lent_does_not_come_back() -> None:
    with lending() as (lender, _):
        lender.lend(1)
        lender.take_back([1])
        for number in (1, 2, 2**63):
            with pytest.raises(ProtocolError, match="was not lent"):
                lender.take_back([number])


class Parcels(RuleBasedStateMachine):
    """Any order of lending, dropping and handing back: no byte ever has two holders, and nothing leaks."""

    def __init__(self) -> None:
        super().__init__()
        self.before = descriptors(), mappings()
        self.lender, self.borrower = Lender(3 * SMALL), Borrower()
        self.held: list[tuple[int, np.ndarray]] = []
        self.count = 0

    @rule(size=st.sampled_from([1, SMALL, SMALL + 1, 4 * SMALL]))
    def lend(self, size: int) -> None:
        self.count = (self.count + 1) % 251
        parcel = self.lender.lend(size)
        assert parcel.size >= size
        parcel.array[:size] = self.count
        pass_on(parcel, self.borrower)
        self.held.append((self.count, self.borrower.borrow(parcel.id, size)))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        del self.held[data.draw(st.integers(0, len(self.held) - 1))]

    @rule()
    def hand_back(self) -> None:
        returned = self.borrower.returned
        self.lender.take_back([returned.popleft() for _ in range(len(returned))])

    @rule()
    def forget(self) -> None:
        self.borrower.forget(self.lender.forgotten())

    @invariant()
    def everybody_reads_what_was_written_for_him(self) -> None:
        for number, array in self.held:
            assert array.min() == array.max() == number

    def teardown(self) -> None:
        self.lender.close()
        self.borrower.close()
        self.held.clear()
        del self.lender, self.borrower
        assert (descriptors(), mappings()) == self.before


TestParcels = Parcels.TestCase
TestParcels.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
