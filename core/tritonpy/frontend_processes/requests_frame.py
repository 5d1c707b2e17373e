"""Requests as the words, rows and extras of an INFER frame, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from tritonpy.api.authenticator import Principal
from tritonpy.frontend_processes.heads import KnownHeads, WrittenHeads
from tritonpy.frontend_processes.odd_tensors import Told, is_odd, restore, tell
from tritonpy.ipc import ProtocolError
from tritonpy.types import NO_PARAMETERS, InferRequest, OutputSpec, SequenceInfo, Sink, Tensor

_WORDS = 6  # of each request
_DECOUPLED, _CLASSIFIES, _REGIONS, _START, _END, _SEQUENCE = 1, 2, 4, 8, 16, 32  # flags
Wants = tuple[str, ...] | None


class TraceSaid(msgspec.Struct):
    """What a frontend knows of a request that may be traced: the client's headers, and moments (name, ns)."""

    headers: dict[str, str]
    stamps: list[tuple[str, int]]


class Rare(msgspec.Struct, omit_defaults=True):
    """What few requests have. `outputs`: name, classes, and region, offset and size; `text_id` is that of a sequence."""

    parameters: dict[str, str | bool | int | float] | None = None
    priority: int = 0
    timeout_us: int = 0
    text_id: str = ""
    outputs: list[tuple[str, int, str, int, int]] = []
    tensors: list[Told] = []
    principal: tuple[str, str] | None = None
    headers: dict[str, str] | None = None
    trace: TraceSaid | None = None


class RequestsFrame(NamedTuple):
    """The parts of a frame."""

    words: list[int]
    rows: list[Sequence[Tensor]]
    wants: list[Wants]
    extras: dict[str, Any]


ReadRequest = tuple[int, InferRequest, TraceSaid | None]
"""The number of a request, the request, and what may be traced of it."""


def write_requests(
    requests: Sequence[tuple[int, InferRequest]],
    heads: WrittenHeads,
    trace_of: Callable[[int, InferRequest], TraceSaid],
) -> RequestsFrame:
    """Return the parts of a frame for requests with their numbers; `trace_of` says what to tell of one that has a trace."""
    heads.begin()
    frame = RequestsFrame([len(requests)], [], [], {})
    words, rows, wants, extras = frame
    rare: dict[str, Any] = {}
    named = False
    for index, (number, request) in enumerate(requests):
        flags, sequence = _flags(request)
        words += (
            number,
            heads.number(request.model_name, request.model_version),
            request.received_ns,
            request.deadline_ns,
            sequence,
            flags,
        )
        row: Sequence[Tensor] = list(request.inputs.values())
        odd: list[Told] = []
        if any([is_odd(tensor) for tensor in row]):
            row, odd = tell(row)
        rows.append(row)
        wants.append(None if request.outputs is None else tuple(request.outputs))
        if odd or not _is_plain(request):
            said = _rare(number, request, odd, trace_of)
            if said:
                rare[str(index)] = said
        named = named or bool(request.id)
    if named:
        extras["ids"] = [request.id for _, request in requests]
    if rare:
        extras["rare"] = rare
    extras.update(heads.news())
    return frame


def _flags(request: InferRequest) -> tuple[int, int]:
    """Return the flags of a request, and the number of its sequence: 0 where it has none or a text."""
    flags = (
        (_DECOUPLED if request.accepts_decoupled else 0)
        | (_CLASSIFIES if request.classifies else 0)
        | (_REGIONS if request.uses_regions else 0)
    )
    sequence = request.sequence
    if sequence is None:
        return flags, 0
    flags |= _SEQUENCE | (_START if sequence.start else 0) | (_END if sequence.end else 0)
    return flags, sequence.id if isinstance(sequence.id, int) else 0


def _is_plain(request: InferRequest) -> bool:
    return (
        not (request.parameters or request.priority or request.timeout_us or request.classifies or request.uses_regions)
        and (request.sequence is None or isinstance(request.sequence.id, int))
        and request.principal is None
        and not request.headers
        and request.trace is None
    )


def _rare(
    number: int, request: InferRequest, odd: list[Told], trace_of: Callable[[int, InferRequest], TraceSaid]
) -> Any:
    sequence, principal = request.sequence, request.principal
    outputs = [
        (spec.name, spec.classification, spec.region, spec.offset, spec.byte_size)
        for spec in (request.outputs or {}).values()
        if spec.classification or spec.region
    ]
    return msgspec.to_builtins(
        Rare(
            dict(request.parameters) or None,
            request.priority,
            request.timeout_us,
            sequence.id if sequence is not None and isinstance(sequence.id, str) else "",
            outputs,
            odd,
            None if principal is None else (principal.name, principal.account),
            dict(request.headers) if request.headers else None,
            None if request.trace is None else trace_of(number, request),
        )
    )


def read_requests(
    words: Sequence[int],
    extras: dict[str, Any],
    rows: Sequence[Sequence[Tensor]],
    wants: Sequence[Wants],
    heads: KnownHeads,
    sink: Sink,
) -> list[ReadRequest]:
    """Return the requests of a frame, to be answered to `sink`. Raises ProtocolError."""
    heads.learn(extras)
    found: list[ReadRequest] = []
    try:
        if len(rows) != words[0]:
            raise ProtocolError(f"{words[0]} requests came with {len(rows)} rows")
        at = 1
        for row, wanted in zip(rows, wants, strict=True):
            number, head, received_ns, deadline_ns, sequence, flags = words[at : at + _WORDS]
            at += _WORDS
            model, version = heads.get(head)
            outputs = None if wanted is None else {name: OutputSpec(name) for name in wanted}
            request = InferRequest(model, {tensor.name: tensor for tensor in row}, sink, version, "", outputs)
            request.received_ns = received_ns
            if deadline_ns:
                request.deadline_ns = deadline_ns
            if flags:
                _take_flags(request, flags, sequence)
            found.append((number, request, None))
        for index, said in extras.get("rare", {}).items():
            place = int(index)
            number, request, _ = found[place]
            rare = msgspec.convert(said, Rare)
            _refine(request, rows[place], rare)
            found[place] = number, request, rare.trace
        for (_, request, _), text in zip(found, extras.get("ids", ()), strict=False):
            request.id = text
    except (IndexError, ValueError, msgspec.ValidationError) as error:
        raise ProtocolError(f"requests are broken: {error}") from error
    return found


def _take_flags(request: InferRequest, flags: int, sequence: int) -> None:
    request.accepts_decoupled = bool(flags & _DECOUPLED)
    request.classifies = bool(flags & _CLASSIFIES)
    request.uses_regions = bool(flags & _REGIONS)
    if flags & _SEQUENCE:
        request.sequence = SequenceInfo(sequence, bool(flags & _START), bool(flags & _END))


def _refine(request: InferRequest, row: Sequence[Tensor], rare: Rare) -> None:
    request.parameters = rare.parameters or NO_PARAMETERS
    request.priority, request.timeout_us = rare.priority, rare.timeout_us
    if rare.text_id and request.sequence is not None:
        request.sequence = SequenceInfo(rare.text_id, request.sequence.start, request.sequence.end)
    if request.outputs is not None:
        request.outputs.update({said[0]: OutputSpec(*said) for said in rare.outputs})
    if rare.tensors:
        request.inputs = {tensor.name: tensor for tensor in restore(row, rare.tensors)}
    if rare.principal is not None:
        request.principal = Principal(rare.principal[0], account=rare.principal[1])
    request.headers = rare.headers
