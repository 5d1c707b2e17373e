from __future__ import annotations

from tritonpy import Unavailable
from tritonpy_backend_trt.output_allocator import Growing, output_allocator


class Block:
    def __init__(self, size):
        self.byte_size, self.address = size, 1000 + size


def refusing(_size):
    raise Unavailable("none left")


def test_memory_grows_when_it_is_too_small_and_stays_otherwise(simulation):
    growing = Growing(Block)
    assert growing.address == 0
    allocator = output_allocator(simulation.trt, growing)
    assert allocator.reallocate_output_async("OUT", 0, 10, 256, 0) == 1010
    assert allocator.reallocate_output("OUT", 1010, 5, 256) == 1010
    assert allocator.reallocate_output("OUT", 1010, 20, 256) == 1020
    assert growing.address == 1020
    allocator.notify_shape("OUT", simulation.trt.Dims((2, 3)))
    assert growing.shape == (2, 3)


def test_an_empty_output_has_an_address_too():
    assert Growing(Block).room(0) == 1001


def test_a_gpu_without_memory_gives_none_and_the_log_says_so(caplog):
    growing = Growing(refusing)
    assert growing.room(5) == 0
    assert "none left" in caplog.text
