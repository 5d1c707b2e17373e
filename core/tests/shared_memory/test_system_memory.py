from __future__ import annotations

import gc
import os
import resource
from pathlib import Path

import numpy as np
import pytest

from tritonpy.shared_memory.system_memory import SystemMemory
from tritonpy_testing import shared_object
from tritonpy_types import SystemRegion
from tritonpy_types.errors import Internal, InvalidArgument

PAGE = resource.getpagesize()


@pytest.fixture
def client():
    with shared_object(2 * PAGE, b"0123456789") as memory:
        yield memory


def mapped(client, offset=0, byte_size=PAGE):
    return SystemMemory(SystemRegion("r", client.key, offset, byte_size))


def test_a_read_is_a_view_of_the_clients_memory(client):
    view = mapped(client).read(2, 4)
    assert bytes(view) == b"2345"
    client.write(b"new", 3)
    assert bytes(view) == b"2new"


def test_views_are_read_only(client):
    view = mapped(client).read(0, 8)
    assert view.readonly
    assert not np.frombuffer(view, np.float64).flags.writeable


def test_a_write_changes_the_clients_memory(client):
    memory = mapped(client, PAGE)
    memory.write(3, np.array([[1, 2], [3, 4]], np.int16))
    assert client.read(8, PAGE + 3) == np.array([1, 2, 3, 4], np.int16).tobytes()


def test_a_strided_array_is_written_in_its_order(client):
    mapped(client).write(0, np.arange(12, dtype=np.uint8).reshape(3, 4)[:, ::2])
    assert client.read(6) == bytes([0, 2, 4, 6, 8, 10])


def test_overlapping_memory_is_copied_correctly(client):
    memory = mapped(client)
    memory.write(2, np.frombuffer(memory.read(0, 8), np.uint8))
    assert client.read(10) == b"0101234567"


def test_empty_arrays_are_allowed(client):
    memory = mapped(client)
    memory.write(PAGE, np.empty((0, 4), np.float32))
    assert bytes(memory.read(PAGE, 0)) == b""


@pytest.mark.parametrize(
    ("offset", "byte_size", "reason"),
    [
        (0, 2 * PAGE + 1, "invalid args"),
        (2 * PAGE, 1, "invalid args"),
        (0, 2**64 - 1, "invalid args"),
        (2**64 - PAGE, 2 * PAGE, "invalid args"),
        (8, 8, "unable to process address spaceInvalid argument"),
        (0, 0, "unable to process address spaceInvalid argument"),
    ],
)
def test_a_region_that_cannot_be_mapped_is_refused(client, offset, byte_size, reason):
    with pytest.raises(InvalidArgument) as refusal:
        mapped(client, offset, byte_size)
    assert refusal.value.message == f"failed to register shared memory region 'r': {reason}"


def test_an_unknown_object_is_not_opened():
    with pytest.raises(Internal, match="Unable to open shared memory region: '/not-there'"):
        SystemMemory(SystemRegion("r", "/not-there", 0, 8))


def test_an_object_that_has_shrunk_is_refused_without_access(client):
    memory = mapped(client, 0, 2 * PAGE)
    client.resize(PAGE)
    assert bytes(memory.read(0, 4)) == b"0123"
    for use in (
        lambda: memory.read(PAGE - 1, 2),
        lambda: memory.write(PAGE, np.zeros(1, np.uint8)),
    ):
        with pytest.raises(InvalidArgument) as refusal:
            use()
        assert refusal.value.message == "Invalid offset + byte size for shared memory region: 'r'"
    client.resize(2 * PAGE)
    assert bytes(memory.read(PAGE, 2)) == b"\0\0"


def test_unlinked_memory_stays_usable():
    with shared_object(PAGE, b"here") as client:
        memory = mapped(client)
    assert bytes(memory.read(0, 4)) == b"here"


def descriptors(client):
    found = [
        os.readlink(f"/proc/self/fd/{number}")
        for number in os.listdir("/proc/self/fd")
        if os.path.lexists(f"/proc/self/fd/{number}")
    ]
    return sum(path.endswith(client.key) for path in found) - 1  # one belongs to the client


def test_views_outlive_the_memory_and_release_it_at_the_end(client):
    view = mapped(client).read(0, 10)
    gc.collect()
    assert bytes(view) == b"0123456789"
    assert client.key in Path("/proc/self/maps").read_text()
    del view
    assert client.key not in Path("/proc/self/maps").read_text()
    assert descriptors(client) == 0


def test_a_refused_registration_leaves_no_descriptor(client):
    with pytest.raises(InvalidArgument):
        mapped(client, 0, 99 * PAGE)
    assert descriptors(client) == 0
