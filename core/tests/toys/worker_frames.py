"""The frames between a server and a worker process."""

from __future__ import annotations

import msgspec

from .frames import WireError, WireTensor


class Execute(msgspec.Struct, tag=True):
    """Server to worker: run the function."""

    id: int
    inputs: list[WireTensor]


class Response(msgspec.Struct, tag=True):
    """Worker to server: the result of the function."""

    id: int
    outputs: list[WireTensor]
    error: WireError | None = None


class Call(msgspec.Struct, tag=True):
    """Worker to server: the function running for request `execution` calls a model."""

    id: int
    execution: int
    model: str
    inputs: list[WireTensor]


class CallResponse(msgspec.Struct, tag=True):
    """Server to worker: the response of the called model."""

    id: int
    outputs: list[WireTensor]
    error: WireError | None = None


ToServer = Response | Call
ToWorker = Execute | CallResponse
