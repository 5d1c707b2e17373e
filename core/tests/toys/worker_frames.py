"""The frames between a server and a worker process."""

from __future__ import annotations

import msgspec

from .frames import WireError, WireTensor


class Execute(msgspec.Struct, tag=True):
    """Server to worker: run the function."""

    id: int
    inputs: list[WireTensor]


class Answer(msgspec.Struct, tag=True):
    """Worker to server: what the function returned."""

    id: int
    outputs: list[WireTensor]
    error: WireError | None = None


class Call(msgspec.Struct, tag=True):
    """Worker to server: the function that runs for request `execution` calls a model."""

    id: int
    execution: int
    model: str
    inputs: list[WireTensor]


class CallAnswer(msgspec.Struct, tag=True):
    """Server to worker: what the called model answered."""

    id: int
    outputs: list[WireTensor]
    error: WireError | None = None


ToServer = Answer | Call
ToWorker = Execute | CallAnswer
