"""Parameters of tensors in shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument, RegionSlice

if TYPE_CHECKING:
    from tritonpy_protos.grpc_service_pb2 import InferParameter


_UINT64 = 2**64 - 1  # signed in the protocol, unsigned in the server


def parse_region(parameters: Mapping[str, InferParameter], tensor: str) -> RegionSlice | None:
    """Return the shared memory slice in the parameters of `tensor`, or None.

    Raises InvalidArgument.
    """
    if "shared_memory_region" not in parameters:
        for key in ("shared_memory_offset", "shared_memory_byte_size"):
            if key in parameters:
                raise InvalidArgument(
                    f"'{key}' can not be specified without 'shared_memory_region' parameter for tensor '{tensor}'"
                )
        return None
    region = parameters["shared_memory_region"]
    if region.WhichOneof("parameter_choice") != "string_param":
        raise _wrong_type("shared_memory_region", tensor, "string_param")
    offset = _integer(parameters, "shared_memory_offset", tensor) if "shared_memory_offset" in parameters else 0
    if "shared_memory_byte_size" not in parameters:
        raise InvalidArgument(
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter "
            f"for tensor '{tensor}'"
        )
    return RegionSlice(region.string_param, offset, _integer(parameters, "shared_memory_byte_size", tensor))


def _integer(parameters: Mapping[str, InferParameter], key: str, tensor: str) -> int:
    if parameters[key].WhichOneof("parameter_choice") != "int64_param":
        raise _wrong_type(key, tensor, "int64_param")
    return parameters[key].int64_param & _UINT64


def _wrong_type(key: str, tensor: str, expected: str) -> InvalidArgument:
    return InvalidArgument(f"invalid value type for '{key}' parameter for tensor '{tensor}', expected {expected}.")
