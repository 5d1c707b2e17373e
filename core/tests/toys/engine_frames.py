"""The frames between an engine and its remote clients on a socket."""

from __future__ import annotations

from typing import Any

import msgspec

from tritonpy_types import OutputSpec, ParameterValue, SequenceInfo

from .frames import WireError, WireTensor


class Infer(msgspec.Struct, tag=True):
    """To the engine: a request; `id` is unique in the connection."""

    id: int
    model_name: str
    model_version: int
    request_id: str
    inputs: list[WireTensor]
    outputs: list[OutputSpec] | None
    parameters: dict[str, ParameterValue]
    priority: int
    timeout_us: int
    deadline_ns: int
    sequence: SequenceInfo | None
    accepts_decoupled: bool
    classifies: bool


class Cancel(msgspec.Struct, tag=True):
    """To the engine: cancel a request."""

    id: int


class MethodCall(msgspec.Struct, tag=True):
    """To the engine: call a method with plain arguments."""

    id: int
    method: str
    arguments: list[Any]


class Response(msgspec.Struct, tag=True):
    """From the engine: one response to a request."""

    id: int
    outputs: list[WireTensor]
    model_name: str
    model_version: int
    request_id: str
    parameters: dict[str, ParameterValue]
    error: WireError | None
    final: bool
    empty: bool


class MethodResult(msgspec.Struct, tag=True):
    """From the engine: the result of a method, still encoded, or its error."""

    id: int
    result: msgspec.Raw
    error: WireError | None


ToEngine = Infer | Cancel | MethodCall
FromEngine = Response | MethodResult
