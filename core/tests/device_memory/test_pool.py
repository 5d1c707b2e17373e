from __future__ import annotations

import gc
import threading
from random import Random

import numpy as np
import pytest

from core.tests.device_memory.fake_cuda import FakeCuda
from tritonpy.device_memory.arena import ALIGNMENT
from tritonpy.device_memory.block import DeviceBlock, HostBlock
from tritonpy.device_memory.pool import Pool
from tritonpy.errors import Unavailable

ME, YOU = "me", "you"


@pytest.fixture
def cuda():
    return FakeCuda()


def host_pool(cuda, total=1024):
    return Pool("pinned system memory", total, HostBlock, cuda.pin, cuda.unpin)


def test_nothing_is_allocated_before_somebody_needs_it_and_then_once(cuda):
    pool = host_pool(cuda)
    assert (cuda.pinned, pool.used()) == ([], 0)
    pieces = [pool.take(100, ME) for _ in range(3)]
    assert (cuda.pinned, pool.used(), pool.held(ME), pool.held(YOU)) == ([1024], 300, 300, 0)
    assert len({piece.address for piece in pieces}) == 3


def test_a_piece_comes_back_when_the_last_view_on_it_goes(cuda):
    pool = host_pool(cuda)
    piece = pool.take(8, ME)
    view = np.asarray(piece).view(np.int32)[1:]
    view[:] = 7
    del piece
    assert pool.used() == 8
    assert view.tolist() == [7]
    del view
    assert (pool.used(), pool.held(ME)) == (0, 0)


def test_without_room_there_is_nothing_and_that_is_counted(cuda):
    pool = host_pool(cuda)
    all_of_it = pool.take(1024, ME)
    assert (pool.take(1, YOU), pool.misses) == (None, 1)
    assert pool.usable
    del all_of_it
    assert pool.take(1, YOU) is not None


def test_a_pool_of_no_bytes_allocates_nothing(cuda):
    pool = host_pool(cuda, 0)
    assert (pool.usable, pool.take(1, ME), cuda.pinned) == (False, None, [])


def test_a_region_that_cannot_be_had_is_told_of_once_and_not_tried_again(caplog):
    cuda = FakeCuda(limit=10)
    pool = host_pool(cuda)
    assert [pool.take(1, ME) for _ in range(3)] == [None] * 3
    assert not pool.usable
    assert caplog.text.count("Unable to allocate pinned system memory, its pool will not be available: cudaMalloc") == 1


def test_what_the_pool_has_no_room_for_may_be_had_apart_and_is_the_owner_s_too(cuda):
    pool = Pool(
        "CUDA memory on GPU 1", 256, DeviceBlock, lambda size: cuda.allocate(size, 1), lambda at: cuda.free(at, 1), 1
    )
    within, apart = pool.take(200, ME), pool.take_apart(5000, ME)
    assert (cuda.on_gpu(1), pool.used(), pool.held(ME)) == ([256, 5000], 200, 5200)
    assert (apart.device, apart.byte_size) == (1, 5000)
    interface = apart.__cuda_array_interface__
    assert (interface["shape"], interface["typestr"], interface["data"]) == ((5000,), "|u1", (apart.address, False))
    del within, apart
    assert (cuda.on_gpu(1), pool.held(ME)) == ([256], 0)


def test_what_cannot_be_had_at_all_is_refused(cuda):
    cuda.limit = 10
    with pytest.raises(Unavailable, match=r"^Failed to allocate pinned system memory with byte size 11: cudaMalloc: "):
        host_pool(cuda).take_apart(11, ME)


def test_a_closed_pool_is_freed_with_its_last_piece(cuda):
    pool = host_pool(cuda)
    piece = pool.take(8, ME)
    pool.close()
    assert (pool.take(8, ME), pool.usable, cuda.pinned) == (None, False, [1024])
    assert piece.byte_size == 8
    del piece
    assert cuda.pinned == []
    pool.close()


def test_pieces_may_go_in_the_middle_of_anything_and_on_any_thread(cuda):
    pool = host_pool(cuda, 64 * ALIGNMENT)

    def work(seed):
        random, kept = Random(seed), []
        for _ in range(500):
            piece = pool.take(random.randrange(1, 4 * ALIGNMENT), seed)
            if piece is not None:
                array = np.asarray(piece)
                array[:] = seed
                kept.append([array])
                kept[-1].append(kept[-1])  # a circle, which the collector finds some time
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


def test_memory_that_cannot_be_freed_is_told_of(cuda, caplog):
    def refuse(_address):
        from tritonpy.cuda_calls import CudaError

        raise CudaError("cudaFreeHost: cudaErrorInvalidValue")

    pool = Pool("pinned system memory", 1024, HostBlock, cuda.pin, refuse)
    pool.take(1, ME)
    pool.close()
    assert "failed to free memory: cudaFreeHost" in caplog.text
