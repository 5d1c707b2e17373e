from __future__ import annotations

import gc
import itertools
import threading
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Unavailable
from tritonpy_device_cuda.block import CudaBlock, HostBlock
from tritonpy_device_cuda.pool import ALIGNMENT, Arena, Pool, aligned_size

from .fake_cuda import FakeCuda

ME, YOU = "me", "you"
TOTAL = 16 * ALIGNMENT


@pytest.fixture
def cuda():
    return FakeCuda()


def host_pool(cuda, total=1024):
    return Pool("pinned system memory", total, HostBlock, cuda.pin, cuda.unpin)


def test_the_region_is_allocated_once_at_the_first_request(cuda):
    pool = host_pool(cuda)
    assert (cuda.pinned, pool.used()) == ([], 0)
    blocks = [pool.take(100, ME) for _ in range(3)]
    assert (cuda.pinned, pool.used(), pool.held(ME), pool.held(YOU)) == ([1024], 300, 300, 0)
    assert len({block.address for block in blocks}) == 3


def test_a_block_returns_with_its_last_view(cuda):
    pool = host_pool(cuda)
    block = pool.take(8, ME)
    view = np.asarray(block).view(np.int32)[1:]
    view[:] = 7
    del block
    assert pool.used() == 8
    assert view.tolist() == [7]
    del view
    assert (pool.used(), pool.held(ME)) == (0, 0)


def test_requests_to_a_full_pool_are_counted(cuda):
    pool = host_pool(cuda)
    all_of_it = pool.take(1024, ME)
    assert (pool.take(1, YOU), pool.misses) == (None, 1)
    assert pool.usable
    del all_of_it
    assert pool.take(1, YOU) is not None


def test_an_empty_pool_allocates_nothing(cuda):
    pool = host_pool(cuda, 0)
    assert (pool.usable, pool.take(1, ME), cuda.pinned) == (False, None, [])


def test_a_failed_allocation_is_logged_once_and_not_retried(caplog):
    cuda = FakeCuda(limit=10)
    pool = host_pool(cuda)
    assert [pool.take(1, ME) for _ in range(3)] == [None] * 3
    assert not pool.usable
    assert (
        caplog.text.count(
            "Unable to allocate pinned system memory, its pool will not be available: cudaMalloc"
        )
        == 1
    )


def test_a_separate_block_is_charged_to_its_owner(cuda):
    pool = Pool(
        "CUDA memory on GPU 1",
        256,
        CudaBlock,
        lambda size: cuda.allocate(size, 1),
        lambda at: cuda.free(at, 1),
        1,
    )
    within, separate = pool.take(200, ME), pool.allocate_separately(5000, ME)
    assert (cuda.on_gpu(1), pool.used(), pool.held(ME)) == ([256, 5000], 200, 5200)
    assert (separate.device, separate.byte_size) == (1, 5000)
    interface = separate.__cuda_array_interface__
    assert (interface["shape"], interface["typestr"], interface["data"]) == (
        (5000,),
        "|u1",
        (separate.address, False),
    )
    del within, separate
    assert (cuda.on_gpu(1), pool.held(ME)) == ([256], 0)


def test_a_failed_separate_allocation_is_refused(cuda):
    cuda.limit = 10
    with pytest.raises(
        Unavailable,
        match=r"^Failed to allocate pinned system memory with byte size 11: cudaMalloc: ",
    ):
        host_pool(cuda).allocate_separately(11, ME)


def test_a_closed_pool_is_freed_with_its_last_block(cuda):
    pool = host_pool(cuda)
    block = pool.take(8, ME)
    pool.close()
    assert (pool.take(8, ME), pool.usable, cuda.pinned) == (None, False, [1024])
    assert block.byte_size == 8
    del block
    assert cuda.pinned == []
    pool.close()


def test_blocks_may_be_released_at_any_point_and_on_any_thread(cuda):
    pool = host_pool(cuda, 64 * ALIGNMENT)

    def work(seed):
        random, kept = Random(seed), []
        for _ in range(500):
            block = pool.take(random.randrange(1, 4 * ALIGNMENT), seed)
            if block is not None:
                array = np.asarray(block)
                array[:] = seed
                kept.append([array])
                # a reference cycle, which the garbage collector finds at some point
                kept[-1].append(kept[-1])
            if random.random() < 0.6 and kept:
                pair = kept.pop(random.randrange(len(kept)))
                assert (pair[0] == seed).all()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert pool.used() == 0
    assert pool.take(64 * ALIGNMENT, ME) is not None


def test_a_free_error_is_logged(cuda, caplog):
    def refuse(_address):
        from tritonpy_device_cuda.cuda_calls import CudaError

        raise CudaError("cudaFreeHost: cudaErrorInvalidValue")

    pool = Pool("pinned system memory", 1024, HostBlock, cuda.pin, refuse)
    pool.take(1, ME)
    pool.close()
    assert "failed to free memory: cudaFreeHost" in caplog.text


def test_ranges_are_aligned_as_those_of_cuda():
    arena = Arena(TOTAL)
    assert [arena.take(size) for size in (1, ALIGNMENT, ALIGNMENT + 1, 0)] == [
        0, ALIGNMENT, 2 * ALIGNMENT, 4 * ALIGNMENT
    ]  # fmt: skip


def test_a_range_that_does_not_fit_is_none():
    arena = Arena(TOTAL)
    assert arena.take(TOTAL + 1) is None
    assert arena.take(TOTAL) == 0
    assert arena.take(1) is None


def test_a_size_that_is_not_a_multiple_of_the_alignment_is_rounded_down():
    arena = Arena(ALIGNMENT + 10)
    assert (arena.take(1), arena.take(1)) == (0, None)


def test_an_empty_arena_has_no_ranges():
    assert Arena(0).take(0) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5 * ALIGNMENT)), max_size=60))
def test_ranges_never_overlap_and_are_all_reusable(steps):
    arena, taken = Arena(TOTAL), {}
    for takes, number in steps:
        if takes:
            offset = arena.take(number)
            if offset is not None:
                taken[offset] = number
        elif taken:
            offset = list(taken)[number % len(taken)]
            arena.free(offset, taken.pop(offset))
        ends = sorted((offset, offset + aligned_size(size)) for offset, size in taken.items())
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))
        assert all(start >= 0 and end <= TOTAL for start, end in ends)
    for offset, size in taken.items():
        arena.free(offset, size)
    assert arena.take(TOTAL) == 0
