from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_backend_trt.allocator import Ledger, allocator_of
from tritonpy_backend_trt.cuda import Cuda


@given(st.lists(st.integers(1, 100)), st.integers(0, 300))
def test_the_ledger_never_holds_more_than_its_limit(sizes, limit):
    ledger, held = Ledger(limit), {}
    for address, size in enumerate(sizes, 1):
        if ledger.reserve(size):
            ledger.note(address, size)
            held[address] = size
        else:
            assert sum(held.values()) + size > limit
        assert ledger.held == sum(held.values()) <= limit
    for address in held:
        ledger.drop(address)
    assert ledger.held == 0


def test_a_complaint_names_what_there_was_no_room_for():
    ledger = Ledger(10)
    assert ledger.complaint() == ""
    assert not ledger.reserve(11)
    assert "allows 10 bytes, 0 are in use and 11 more were asked for" in ledger.complaint()


def test_memory_of_tensorrt_comes_from_cuda_and_goes_back(simulation):
    ledger = Ledger(None)
    allocator = allocator_of(simulation.trt, Cuda(simulation.runtime), ledger)
    one, two = allocator.allocate(100, 256, 0), allocator.allocate_async(50, 256, 0, 0)
    assert (ledger.held, simulation.machine.held(0)) == (150, 150)
    assert allocator.reallocate(one, 256, 200) is None
    assert allocator.deallocate(one)
    assert allocator.deallocate_async(two, 0)
    assert (ledger.held, simulation.machine.held(0)) == (0, 0)


def test_nothing_is_had_of_nothing_and_given_back_gladly(simulation):
    allocator = allocator_of(simulation.trt, Cuda(simulation.runtime), Ledger(None))
    assert allocator.allocate(0, 0, 0) is None
    assert allocator.deallocate(0)


def test_what_cuda_refuses_is_not_counted(simulation):
    ledger = Ledger(None)
    allocator = allocator_of(simulation.trt, Cuda(simulation.runtime), ledger)
    simulation.machine.refusals["cudaMalloc"] = 2
    assert allocator.allocate(100, 0, 0) is None
    assert ledger.held == 0
    assert not allocator.deallocate(1 << 60)  # memory that is not its own
