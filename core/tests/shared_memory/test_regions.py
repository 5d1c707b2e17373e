from __future__ import annotations

import sys
import threading

import pytest

from core.tests.toys.device import ToyDevice
from tritonpy.shared_memory import Regions
from tritonpy_testing import shared_object
from tritonpy_types import CudaRegion, RegionSlice, SystemRegion
from tritonpy_types.errors import AlreadyExists, Internal, InvalidArgument, NotFound, Unsupported

HANDLE = bytes(64)
DISABLED = (
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
)


@pytest.fixture
def client():
    with shared_object(8192, b"content") as memory:
        yield memory


@pytest.fixture
def gpu():
    return ToyDevice()


@pytest.fixture
def regions(gpu):
    return Regions(allowed=True, gpus=gpu)


@pytest.fixture
def register(regions, client):
    def call(name="r", byte_size=16, offset=0):
        region = SystemRegion(name, client.key, offset, byte_size)
        regions.register_system(region)
        return region

    return call


def refused(kind, call, *arguments):
    with pytest.raises(kind) as refusal:
        call(*arguments)
    return refusal.value.message


def test_disabled_regions_refuse_every_change(client):
    regions = Regions(allowed=False)
    system, cuda = SystemRegion("r", client.key, 0, 8), CudaRegion("r", 0, 8)
    assert refused(Unsupported, regions.register_system, system) == DISABLED
    assert refused(Unsupported, regions.register_cuda, cuda, HANDLE) == DISABLED
    assert refused(Unsupported, regions.check, "cuda", "") == DISABLED
    assert refused(Unsupported, regions.unregister, "system") == DISABLED
    assert regions.status("system") == regions.status("cuda") == []
    assert (
        refused(NotFound, regions.hold, RegionSlice("r", 0, 1))
        == "Unable to find shared memory region: 'r'"
    )


def test_regions_are_listed_by_name_and_kind(regions, register, gpu):
    second, first = register("b"), register("a", 8, 4096)
    regions.register_cuda(CudaRegion("c", 0, 16), HANDLE)
    assert regions.status("system") == [first, second]
    assert regions.status("system", "b") == [second]
    assert regions.status("cuda") == [CudaRegion("c", 0, 16)]


def test_a_region_of_the_other_kind_is_named(regions, register, gpu):
    register("s")
    regions.register_cuda(CudaRegion("c", 0, 16), HANDLE)
    assert (
        refused(NotFound, regions.status, "system", "x")
        == "Unable to find system shared memory region: 'x'"
    )
    assert (
        refused(NotFound, regions.status, "cuda", "x")
        == "Unable to find cuda shared memory region: 'x'"
    )
    assert refused(NotFound, regions.status, "cuda", "s") == (
        "The region named 's' is registered as system shared memory, not CUDA shared memory"
    )
    assert refused(NotFound, regions.status, "system", "c") == (
        "The region named 'c' is registered as CUDA shared memory, not system shared memory"
    )


def test_a_name_is_unique_across_kinds(regions, register, gpu):
    register("r")
    for call in (
        lambda: register("r"),
        lambda: regions.register_cuda(CudaRegion("r", 0, 16), HANDLE),
    ):
        assert refused(AlreadyExists, call) == "shared memory region 'r' already in manager"
    assert gpu.opened == []


def test_one_of_many_concurrent_registrations_succeeds(monkeypatch, regions, client):
    together, outcomes = threading.Barrier(8), []

    class Slow:
        def __init__(self, *_):
            together.wait(20)  # all of them found the name free

    monkeypatch.setattr("tritonpy.shared_memory.system_memory.SystemMemory", Slow)

    def attempt():
        try:
            regions.register_system(SystemRegion("r", client.key, 0, 8))
            outcomes.append("registered")
        except AlreadyExists:
            outcomes.append("taken")

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["registered"] + ["taken"] * 7
    assert len(regions.status("system")) == 1


def test_without_a_plugin_for_gpus_gpu_memory_is_refused_and_the_package_logged(caplog):
    regions = Regions(allowed=True)
    text = "failed to register shared memory region: invalid args"
    assert refused(InvalidArgument, regions.register_cuda, CudaRegion("r", 0, 8), HANDLE) == text
    assert regions.status("cuda") == []
    assert "tritonpy-device-cuda" in caplog.text


def test_a_name_is_necessary(regions):
    for kind in ("system", "cuda"):
        text = f"'region name' is necessary to register {kind} shared memory region"
        assert refused(InvalidArgument, regions.check, kind, "") == text
    regions.check("cuda", "r")


def test_an_invalid_key_or_size_registers_nothing(regions, client):
    refused(InvalidArgument, regions.register_system, SystemRegion("r", "/", 0, 8))
    refused(Internal, regions.register_system, SystemRegion("r", "/not-there", 0, 8))
    refused(InvalidArgument, regions.register_system, SystemRegion("r", client.key, 0, 8193))
    assert regions.status("system") == []


def test_unregister_removes_the_named_region_of_that_kind(regions, register, gpu):
    kept, _ = register("kept"), register("gone")
    regions.register_cuda(CudaRegion("c", 0, 16), HANDLE)
    regions.unregister("system", "gone")
    regions.unregister("system", "never there")
    regions.unregister("system", "c")
    regions.unregister("cuda", "kept")
    assert regions.status("system") == [kept]
    assert len(regions.status("cuda")) == 1
    regions.unregister("system")
    assert regions.status("system") == []
    regions.unregister("cuda")
    assert regions.status("cuda") == []


def test_a_used_region_is_removed_with_its_last_user(regions, register):
    register("r")
    first, second = ([regions.hold(RegionSlice("r", 0, 1))] for _ in range(2))
    regions.unregister("system")
    assert refused(AlreadyExists, register, "r")
    regions.release(first)
    assert regions.status("system", "r")
    regions.release(first)  # a second time
    assert regions.status("system", "r")
    third = [regions.hold(RegionSlice("r", 0, 1))]
    regions.release(second)
    regions.release(third)
    assert regions.status("system") == []
    register("r")


def test_a_registered_region_stays_after_its_users(regions, register):
    register("r")
    regions.release([regions.hold(RegionSlice("r", 0, 1))])
    assert regions.status("system", "r")


@pytest.mark.parametrize(
    ("offset", "byte_size", "text"),
    [
        (16, 0, "Invalid offset for shared memory region: 'r'"),
        (2**64 - 1, 0, "Invalid offset for shared memory region: 'r'"),
        (0, 17, "Invalid offset + byte size for shared memory region: 'r'"),
        (15, 2, "Invalid offset + byte size for shared memory region: 'r'"),
        (0, 2**64 - 1, "Invalid offset + byte size for shared memory region: 'r'"),
        (1, 2**64 - 1, f"Integer overflow detected: byte_size ({2**64 - 1}) + offset (1) exceeds maximum value ({2**64 - 1}) for region 'r'"),
    ],
)  # fmt: skip
def test_a_part_must_be_inside_its_region(regions, register, offset, byte_size, text):
    register("r", 16)
    assert refused(InvalidArgument, regions.hold, RegionSlice("r", offset, byte_size)) == text
    regions.unregister("system")
    assert regions.status("system") == [], "the refused part holds it"


@pytest.mark.parametrize(("offset", "byte_size"), [(0, 16), (15, 1), (15, 0), (0, 0)])
def test_every_valid_part_can_be_held(regions, register, offset, byte_size):
    register("r", 16)
    assert regions.hold(RegionSlice("r", offset, byte_size)).spec.name == "r"


def test_the_module_imports_nothing_that_maps_memory():
    assert "mmap" not in vars(sys.modules[Regions.__module__])
