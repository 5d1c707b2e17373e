"""The RPCs of shared memory, as functions from the engine and a message to a message. Knows no transport."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from google.protobuf.message import Message

from tritonpy import Engine, RegionKind
from tritonpy_protos import grpc_service_pb2 as pb


def _system_status(engine: Engine, asked: pb.SystemSharedMemoryStatusRequest) -> pb.SystemSharedMemoryStatusResponse:
    status = pb.SystemSharedMemoryStatusResponse.RegionStatus
    found = [status(**msgspec.to_builtins(region)) for region in engine.regions(RegionKind.SYSTEM, asked.name)]
    return pb.SystemSharedMemoryStatusResponse(regions={region.name: region for region in found})


def _system_register(
    engine: Engine, asked: pb.SystemSharedMemoryRegisterRequest
) -> pb.SystemSharedMemoryRegisterResponse:
    engine.register_system_region(asked.name, asked.key, asked.offset, asked.byte_size)
    return pb.SystemSharedMemoryRegisterResponse()


def _system_unregister(
    engine: Engine, asked: pb.SystemSharedMemoryUnregisterRequest
) -> pb.SystemSharedMemoryUnregisterResponse:
    engine.unregister_regions(RegionKind.SYSTEM, asked.name)
    return pb.SystemSharedMemoryUnregisterResponse()


def _cuda_status(engine: Engine, asked: pb.CudaSharedMemoryStatusRequest) -> pb.CudaSharedMemoryStatusResponse:
    status = pb.CudaSharedMemoryStatusResponse.RegionStatus
    found = [status(**msgspec.to_builtins(region)) for region in engine.regions(RegionKind.CUDA, asked.name)]
    return pb.CudaSharedMemoryStatusResponse(regions={region.name: region for region in found})


def _cuda_register(engine: Engine, asked: pb.CudaSharedMemoryRegisterRequest) -> pb.CudaSharedMemoryRegisterResponse:
    engine.register_cuda_region(asked.name, asked.raw_handle, asked.device_id, asked.byte_size)
    return pb.CudaSharedMemoryRegisterResponse()


def _cuda_unregister(
    engine: Engine, asked: pb.CudaSharedMemoryUnregisterRequest
) -> pb.CudaSharedMemoryUnregisterResponse:
    engine.unregister_regions(RegionKind.CUDA, asked.name)
    return pb.CudaSharedMemoryUnregisterResponse()


SHARED_MEMORY: Mapping[str, Callable[[Engine, Any], Message]] = {
    "SystemSharedMemoryStatus": _system_status,
    "SystemSharedMemoryRegister": _system_register,
    "SystemSharedMemoryUnregister": _system_unregister,
    "CudaSharedMemoryStatus": _cuda_status,
    "CudaSharedMemoryRegister": _cuda_register,
    "CudaSharedMemoryUnregister": _cuda_unregister,
}
