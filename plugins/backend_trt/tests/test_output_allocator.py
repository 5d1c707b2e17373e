from __future__ import annotations

from tritonpy import Unavailable
from tritonpy_backend_trt.output_allocator import GrowableBuffer, output_allocator


class Block:
    def __init__(self, size):
        self.byte_size, self.address = size, 1000 + size


def refusing(_size):
    raise Unavailable("none left")


def test_a_buffer_grows_only_if_too_small(simulation):
    growable = GrowableBuffer(Block)
    assert growable.address == 0
    allocator = output_allocator(simulation.trt, growable)
    assert allocator.reallocate_output_async("OUT", 0, 10, 256, 0) == 1010
    assert allocator.reallocate_output("OUT", 1010, 5, 256) == 1010
    assert allocator.reallocate_output("OUT", 1010, 20, 256) == 1020
    assert growable.address == 1020
    allocator.notify_shape("OUT", simulation.trt.Dims((2, 3)))
    assert growable.shape == (2, 3)


def test_an_empty_output_has_an_address_too():
    assert GrowableBuffer(Block).reserve(0) == 1001


def test_a_failed_allocation_is_logged(caplog):
    growable = GrowableBuffer(refusing)
    assert growable.reserve(5) == 0
    assert "none left" in caplog.text
