from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_backend_trt.allocator import AllocationTracker, create_allocator
from tritonpy_backend_trt.cuda import Cuda


@given(st.lists(st.integers(1, 100)), st.integers(0, 300))
def test_allocations_never_exceed_the_limit(sizes, limit):
    tracker, held = AllocationTracker(limit), {}
    for address, size in enumerate(sizes, 1):
        if tracker.reserve(size):
            tracker.record(address, size)
            held[address] = size
        else:
            assert sum(held.values()) + size > limit
        assert tracker.allocated_bytes == sum(held.values()) <= limit
    for address in held:
        tracker.remove(address)
    assert tracker.allocated_bytes == 0


def test_the_limit_message_names_the_refused_size():
    tracker = AllocationTracker(10)
    assert tracker.limit_message() == ""
    assert not tracker.reserve(11)
    assert "allows 10 bytes, 0 are in use and 11 more were requested" in tracker.limit_message()


def test_tensorrts_memory_is_allocated_and_freed_with_cuda(simulation):
    tracker = AllocationTracker(None)
    allocator = create_allocator(simulation.trt, Cuda(simulation.runtime), tracker)
    one, two = allocator.allocate(100, 256, 0), allocator.allocate_async(50, 256, 0, 0)
    assert (tracker.allocated_bytes, simulation.machine.held(0)) == (150, 150)
    assert allocator.reallocate(one, 256, 200) is None
    assert allocator.deallocate(one)
    assert allocator.deallocate_async(two, 0)
    assert (tracker.allocated_bytes, simulation.machine.held(0)) == (0, 0)


def test_empty_allocations_are_supported(simulation):
    allocator = create_allocator(simulation.trt, Cuda(simulation.runtime), AllocationTracker(None))
    assert allocator.allocate(0, 0, 0) is None
    assert allocator.deallocate(0)


def test_failed_allocations_are_not_counted(simulation):
    tracker = AllocationTracker(None)
    allocator = create_allocator(simulation.trt, Cuda(simulation.runtime), tracker)
    simulation.machine.refusals["cudaMalloc"] = 2
    assert allocator.allocate(100, 0, 0) is None
    assert tracker.allocated_bytes == 0
    assert not allocator.deallocate(1 << 60)  # memory that it did not allocate
