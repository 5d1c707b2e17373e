"""Requests as the words, rows and extras of an INFER frame, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tritonpy.api.authenticator import Principal
from tritonpy.frontend_processes.heads import KnownHeads, WrittenHeads
from tritonpy.frontend_processes.odd_tensors import Told, is_odd, restore, tell
from tritonpy.ipc import ProtocolError
from tritonpy.ipc.blocks import PlacedInputs
from tritonpy.types import NO_PARAMETERS, InferRequest, OutputSpec, SequenceInfo, Sink, Tensor

_WORDS = 5  # of each run: how many requests, the number of the first, their head, flags, sequence
_TIMES = 2  # of each request: when it was received, and its deadline
_DECOUPLED, _CLASSIFIES, _REGIONS, _START, _END, _SEQUENCE, _RARE = 1, 2, 4, 8, 16, 32, 64  # flags
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


ReadRequests = tuple[int, list[InferRequest], TraceSaid | None]
"""Requests that are alike (`Engine.infer_alike`), or a single one, the number of the first, and what may be traced of a single one."""


def write_requests(
    requests: Sequence[tuple[int, InferRequest]],
    heads: WrittenHeads,
    trace_of: Callable[[int, InferRequest], TraceSaid],
) -> RequestsFrame:
    """Return the parts of a frame for requests with their numbers; `trace_of` says what to tell of one that has a trace."""
    heads.begin()
    frame = RequestsFrame([len(requests), 0], [], [], {})
    words, rows, wants, extras = frame
    rare: dict[str, Any] = {}
    named = False
    run, alike = 0, (-1, -1)  # where the last run begins, and number and head of a request that would belong to it
    for index, (number, request) in enumerate(requests):
        flags, sequence = _flags(request)
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
                flags |= _RARE
        named = named or bool(request.id)
        head = heads.number(request.model_name, request.model_version)
        if flags or alike != (number, head):
            run = len(words)
            words += (0, number, head, flags, sequence)
        words[run] += 1
        words += (request.received_ns, request.deadline_ns)
        alike = (-1, -1) if flags else (number + 1, head)
    words[1] = len(words)
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
    rows: Sequence[PlacedInputs | Sequence[Tensor]],
    wants: Sequence[Wants],
    heads: KnownHeads,
    sink: Sink,
) -> list[ReadRequests]:
    """Return the requests of a frame, to be answered to `sink`: neighbours that are alike together. Raises ProtocolError."""
    heads.learn(extras)
    found: list[ReadRequests] = []
    rare, ids = extras.get("rare", {}), extras.get("ids")
    try:
        if len(rows) != words[0]:
            raise ProtocolError(f"{words[0]} requests came with {len(rows)} rows")
        index, at = 0, 2
        while index < len(rows):
            count, number, head, flags, sequence = words[at : at + _WORDS]
            at += _WORDS
            times = words[at : at + _TIMES * count]
            at += _TIMES * count
            stop = index + count
            made = _made(rows[index:stop], wants[index:stop], heads.get(head), times, sink)
            if len(made) != count or not count:
                raise ProtocolError(f"a run of {count} requests is cut short")
            if ids is not None:
                for request, text in zip(made, ids[index:stop], strict=True):
                    request.id = text
            if flags:
                (request,) = made
                found.append((number, made, _take_flags(request, flags, sequence, rare.get(str(index)))))
            else:
                found += _alike(number, made)
            index = stop
    except (IndexError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise ProtocolError(f"requests are broken: {error}") from error
    return found


def _made(
    rows: Sequence[PlacedInputs | Sequence[Tensor]],
    wants: Sequence[Wants],
    head: tuple[str, int],
    times: Sequence[int],
    sink: Sink,
) -> list[InferRequest]:
    """Return requests that have no more to them than their tensors; those that want the same outputs share what says so."""
    model, version = head
    made: list[InferRequest] = []
    known: Wants = None
    outputs: dict[str, OutputSpec] | None = None
    for row, wanted, received_ns, deadline_ns in zip(rows, wants, times[::_TIMES], times[1::_TIMES], strict=True):
        if wanted is not known:
            known = wanted
            outputs = None if wanted is None else {name: OutputSpec(name) for name in wanted}
        inputs: Any = row if isinstance(row, PlacedInputs) else {tensor.name: tensor for tensor in row}
        request = InferRequest(model, inputs, sink, version, "", outputs)
        request.received_ns = received_ns
        if deadline_ns:
            request.deadline_ns = deadline_ns
        made.append(request)
    return made


def _alike(number: int, requests: list[InferRequest]) -> Iterator[ReadRequests]:
    """Cut a run where its inputs lie in another block: those of one block have the same names, types and shapes, and want the same outputs."""
    start = 0
    while start < len(requests):
        inputs: Any = requests[start].inputs
        stop = start + 1
        if isinstance(inputs, PlacedInputs):
            stop = start + inputs.block.count - inputs.place
        yield number + start, requests[start:stop], None
        start = stop


def _take_flags(request: InferRequest, flags: int, sequence: int, said: Any) -> TraceSaid | None:
    request.accepts_decoupled = bool(flags & _DECOUPLED)
    request.classifies = bool(flags & _CLASSIFIES)
    request.uses_regions = bool(flags & _REGIONS)
    if flags & _SEQUENCE:
        request.sequence = SequenceInfo(sequence, bool(flags & _START), bool(flags & _END))
    if not flags & _RARE:
        return None
    rare = msgspec.convert(said, Rare)
    _refine(request, rare)
    return rare.trace


def _refine(request: InferRequest, rare: Rare) -> None:
    request.parameters = rare.parameters or NO_PARAMETERS
    request.priority, request.timeout_us = rare.priority, rare.timeout_us
    if rare.text_id and request.sequence is not None:
        request.sequence = SequenceInfo(rare.text_id, request.sequence.start, request.sequence.end)
    if request.outputs is not None:
        request.outputs.update({said[0]: OutputSpec(*said) for said in rare.outputs})
    if rare.tensors:
        row = restore(list(request.inputs.values()), rare.tensors)
        request.inputs = {tensor.name: tensor for tensor in row}
    if rare.principal is not None:
        request.principal = Principal(rare.principal[0], account=rare.principal[1])
    request.headers = rare.headers
