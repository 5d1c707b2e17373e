"""The frames between an engine and somebody who reaches it through a socket."""

from __future__ import annotations

from typing import Any

import msgspec

from tritonpy.types import OutputSpec, ParameterValue, SequenceInfo

from .frames import WireError, WireTensor


class Infer(msgspec.Struct, tag=True):
    """To the engine: a request; `id` is the connection's own."""

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
    """To the engine: the request is not wanted any more."""

    id: int


class Ask(msgspec.Struct, tag=True):
    """To the engine: call a method with plain arguments."""

    id: int
    method: str
    arguments: list[Any]


class Answer(msgspec.Struct, tag=True):
    """From the engine: one answer to a request."""

    id: int
    outputs: list[WireTensor]
    model_name: str
    model_version: int
    request_id: str
    parameters: dict[str, ParameterValue]
    error: WireError | None
    final: bool
    empty: bool


class Told(msgspec.Struct, tag=True):
    """From the engine: what a method returned, still encoded, or raised."""

    id: int
    result: msgspec.Raw
    error: WireError | None


ToEngine = Infer | Cancel | Ask
FromEngine = Answer | Told
