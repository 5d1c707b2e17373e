from __future__ import annotations

import pytest

from tritonpy import AlreadyExists
from tritonpy_frontend_grpc.shared_memory import SHARED_MEMORY
from tritonpy_protos import grpc_service_pb2 as pb

from .fake_engine import FakeEngine


@pytest.fixture
def engine():
    return FakeEngine()


def test_the_status_lists_every_region(engine):
    found = SHARED_MEMORY["SystemSharedMemoryStatus"](
        engine, pb.SystemSharedMemoryStatusRequest(name="r")
    )
    assert engine.calls == [("regions", "system", "r")]
    assert sorted(found.regions) == ["one", "two"]
    one = found.regions["one"]
    assert (one.name, one.key, one.offset, one.byte_size) == ("one", "/one", 4096, 2**40)


def test_the_cuda_status_lists_devices(engine):
    found = SHARED_MEMORY["CudaSharedMemoryStatus"](engine, pb.CudaSharedMemoryStatusRequest())
    assert engine.calls == [("regions", "cuda", "")]
    region = found.regions["on a GPU"]
    assert (region.name, region.device_id, region.byte_size) == ("on a GPU", 1, 2**40)


def test_a_registration_is_passed_to_the_engine(engine):
    message = pb.SystemSharedMemoryRegisterRequest(
        name="r", key="/k", offset=2**63, byte_size=2**64 - 1
    )
    SHARED_MEMORY["SystemSharedMemoryRegister"](engine, message)
    message = pb.CudaSharedMemoryRegisterRequest(
        name="c", raw_handle=b"\x00\xff", device_id=-1, byte_size=8
    )
    SHARED_MEMORY["CudaSharedMemoryRegister"](engine, message)
    assert engine.calls == [
        ("register_system_region", "r", "/k", 2**63, 2**64 - 1), ("register_cuda_region", "c", b"\x00\xff", -1, 8),
    ]  # fmt: skip


def test_errors_of_the_engine_are_raised(engine):
    with pytest.raises(AlreadyExists):
        SHARED_MEMORY["SystemSharedMemoryRegister"](
            engine, pb.SystemSharedMemoryRegisterRequest(name="taken")
        )


def test_regions_are_unregistered_by_name_or_all(engine):
    SHARED_MEMORY["SystemSharedMemoryUnregister"](
        engine, pb.SystemSharedMemoryUnregisterRequest(name="r")
    )
    SHARED_MEMORY["CudaSharedMemoryUnregister"](engine, pb.CudaSharedMemoryUnregisterRequest())
    assert engine.calls == [
        ("unregister_regions", "system", "r"),
        ("unregister_regions", "cuda", ""),
    ]
