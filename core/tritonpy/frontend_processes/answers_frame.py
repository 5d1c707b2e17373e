"""Answers as the words, rows and extras of an ANSWER frame, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tritonpy.frontend_processes.odd_tensors import Told, is_odd, restore, tell
from tritonpy.ipc import ProtocolError
from tritonpy.ipc.blocks import Placed
from tritonpy.runners.workers.on_host import on_host
from tritonpy.runners.workers.told_error import tell_named_error, told_named_error
from tritonpy.types import CPU, NO_PARAMETERS, InferRequest, InferResponse, Tensor

FINAL, EMPTY, TRACED, REFUSED = 1, 2, 4, 8  # flags of an answer
WORDS = 3  # of each answer: the number of its request, flags, and the version plus one


class AnswersFrame(NamedTuple):
    """The parts of a frame."""

    words: list[int]
    rows: list[Sequence[Tensor]]
    extras: dict[str, Any]


Given = tuple[int, InferRequest, InferResponse, bool]
"""An answer to the request of that number, and whether the frontend is to tell when it went: the request is traced."""


def write_answers(answers: Iterable[Given]) -> AnswersFrame:
    """Return the parts of a frame; outputs that lie on devices are copied. Raises what such a copy raises."""
    frame = AnswersFrame([0], [], {})
    words, rows, extras = frame
    for index, (number, request, response, traced) in enumerate(answers):
        words[0] += 1
        flags = (FINAL if response.final else 0) | (EMPTY if response.empty else 0) | (TRACED if traced else 0)
        if response.refused:
            flags |= REFUSED
        words += (number, flags, response.model_version + 1)
        row: Sequence[Tensor] = response.outputs
        for tensor in () if isinstance(row, Placed) else row:
            if tensor.device[0] != CPU[0] or is_odd(tensor):
                row, odd = tell(on_host(row))
                if odd:
                    extras.setdefault("tensors", {})[str(index)] = odd
                break
        rows.append(row)
        if response.error is not None:
            extras.setdefault("errors", {})[str(index)] = tell_named_error(response.error)
        if response.parameters:
            extras.setdefault("parameters", {})[str(index)] = dict(response.parameters)
        if response.model_name != request.model_name:
            extras.setdefault("names", {})[str(index)] = response.model_name
        if response.id != request.id:
            extras.setdefault("ids", {})[str(index)] = response.id
    return frame


def read_answers(
    words: Sequence[int],
    extras: Mapping[str, Any],
    rows: Sequence[Sequence[Tensor]],
    find: Callable[[int], InferRequest | None],
) -> Iterator[Given]:
    """Give the answers of a frame to the requests that `find` has by their numbers, those to others are left out. Raises ProtocolError."""
    if WORDS * words[0] + 1 > len(words) or len(rows) != words[0]:
        raise ProtocolError(f"{words[0]} answers came with {len(rows)} rows")
    for index, row in enumerate(rows):
        at = 1 + WORDS * index
        number, flags, version = words[at : at + WORDS]
        request = find(number)
        if request is None:
            continue
        response = InferResponse(row, request.model_name, version - 1, request.id)
        response.final, response.empty = bool(flags & FINAL), bool(flags & EMPTY)
        response.refused = bool(flags & REFUSED)
        if extras:
            _refine(response, str(index), extras)
        yield number, request, response, bool(flags & TRACED)


def _refine(response: InferResponse, index: str, extras: Mapping[str, Any]) -> None:
    told: Sequence[Told] = extras.get("tensors", {}).get(index, ())
    if told:
        response.outputs = restore(response.outputs, told)
    if index in extras.get("errors", {}):
        response.error = told_named_error(extras["errors"][index])
    response.parameters = extras.get("parameters", {}).get(index, NO_PARAMETERS)
    response.model_name = extras.get("names", {}).get(index, response.model_name)
    response.id = extras.get("ids", {}).get(index, response.id)
