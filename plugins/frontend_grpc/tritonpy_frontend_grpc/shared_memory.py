"""The RPCs of shared memory, as functions of the engine and a request message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from google.protobuf.message import Message

from tritonpy import Engine
from tritonpy.frontend import RegionKind
from tritonpy_protos import grpc_service_pb2 as pb


def _system_status(
    engine: Engine, message: pb.SystemSharedMemoryStatusRequest
) -> pb.SystemSharedMemoryStatusResponse:
    status = pb.SystemSharedMemoryStatusResponse.RegionStatus
    found = [
        status(**msgspec.to_builtins(region))
        for region in engine.regions(RegionKind.SYSTEM, message.name)
    ]
    return pb.SystemSharedMemoryStatusResponse(regions={region.name: region for region in found})


def _system_register(
    engine: Engine, message: pb.SystemSharedMemoryRegisterRequest
) -> pb.SystemSharedMemoryRegisterResponse:
    engine.register_system_region(message.name, message.key, message.offset, message.byte_size)
    return pb.SystemSharedMemoryRegisterResponse()


def _system_unregister(
    engine: Engine, message: pb.SystemSharedMemoryUnregisterRequest
) -> pb.SystemSharedMemoryUnregisterResponse:
    engine.unregister_regions(RegionKind.SYSTEM, message.name)
    return pb.SystemSharedMemoryUnregisterResponse()


def _cuda_status(
    engine: Engine, message: pb.CudaSharedMemoryStatusRequest
) -> pb.CudaSharedMemoryStatusResponse:
    status = pb.CudaSharedMemoryStatusResponse.RegionStatus
    found = [
        status(**msgspec.to_builtins(region))
        for region in engine.regions(RegionKind.CUDA, message.name)
    ]
    return pb.CudaSharedMemoryStatusResponse(regions={region.name: region for region in found})


def _cuda_register(
    engine: Engine, message: pb.CudaSharedMemoryRegisterRequest
) -> pb.CudaSharedMemoryRegisterResponse:
    engine.register_cuda_region(
        message.name, message.raw_handle, message.device_id, message.byte_size
    )
    return pb.CudaSharedMemoryRegisterResponse()


def _cuda_unregister(
    engine: Engine, message: pb.CudaSharedMemoryUnregisterRequest
) -> pb.CudaSharedMemoryUnregisterResponse:
    engine.unregister_regions(RegionKind.CUDA, message.name)
    return pb.CudaSharedMemoryUnregisterResponse()


SHARED_MEMORY: Mapping[str, Callable[[Engine, Any], Message]] = {
    "SystemSharedMemoryStatus": _system_status,
    "SystemSharedMemoryRegister": _system_register,
    "SystemSharedMemoryUnregister": _system_unregister,
    "CudaSharedMemoryStatus": _cuda_status,
    "CudaSharedMemoryRegister": _cuda_register,
    "CudaSharedMemoryUnregister": _cuda_unregister,
}
