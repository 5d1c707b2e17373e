"""Encoding and decoding of RESPONSES frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tritonpy import InferRequest, InferResponse, Tensor
from tritonpy.execution import CPU
from tritonpy.frontend import NO_PARAMETERS
from tritonpy_engine_rpc.host_tensors import to_host
from tritonpy_engine_rpc.messages import decode_named_error, encode_named_error
from tritonpy_frontend_processes.irregular_tensors import (
    TensorDescription,
    is_irregular,
    restore,
    split_irregular,
)
from tritonpy_ipc import ProtocolError
from tritonpy_ipc.blocks import BlockView

FINAL, EMPTY, TRACED, REFUSED = 1, 2, 4, 8  # flags of a response
WORDS = 3  # of each response: the number of its request, flags, and the version plus one


class ResponsesFrame(NamedTuple):
    """The parts of a RESPONSES frame: words, outputs per response, and extras."""

    words: list[int]
    rows: list[Sequence[Tensor]]
    extras: dict[str, Any]


NumberedResponse = tuple[int, InferRequest, InferResponse, bool]
"""Request number, request, response, and whether the frontend must send time stamps for a trace."""


def write_responses(responses: Iterable[NumberedResponse]) -> ResponsesFrame:
    """Return the parts of a frame.

    Outputs on devices are copied. Raises the errors of such copies.
    """
    frame = ResponsesFrame([0], [], {})
    words, rows, extras = frame
    for index, (number, request, response, traced) in enumerate(responses):
        words[0] += 1
        flags = (
            (FINAL if response.final else 0)
            | (EMPTY if response.empty else 0)
            | (TRACED if traced else 0)
        )
        if response.refused:
            flags |= REFUSED
        words += (number, flags, response.model_version + 1)
        row: Sequence[Tensor] = response.outputs
        for tensor in () if isinstance(row, BlockView) else row:
            if tensor.device[0] != CPU[0] or is_irregular(tensor):
                row, irregular = split_irregular(to_host(row))
                if irregular:
                    extras.setdefault("tensors", {})[str(index)] = irregular
                break
        rows.append(row)
        if response.error is not None:
            extras.setdefault("errors", {})[str(index)] = encode_named_error(response.error)
        if response.parameters:
            extras.setdefault("parameters", {})[str(index)] = dict(response.parameters)
        if response.model_name != request.model_name:
            extras.setdefault("names", {})[str(index)] = response.model_name
        if response.id != request.id:
            extras.setdefault("ids", {})[str(index)] = response.id
    return frame


def read_responses(
    words: Sequence[int],
    extras: Mapping[str, Any],
    rows: Sequence[Sequence[Tensor]],
    find: Callable[[int], InferRequest | None],
) -> Iterator[NumberedResponse]:
    """Yield the responses of a frame for the requests that `find` returns for their numbers.

    Responses to unknown requests are skipped. Raises ProtocolError.
    """
    if WORDS * words[0] + 1 > len(words) or len(rows) != words[0]:
        raise ProtocolError(f"{words[0]} responses arrived with {len(rows)} rows")
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
            _apply_optional_fields(response, str(index), extras)
        yield number, request, response, bool(flags & TRACED)


def _apply_optional_fields(response: InferResponse, index: str, extras: Mapping[str, Any]) -> None:
    descriptions: Sequence[TensorDescription] = extras.get("tensors", {}).get(index, ())
    if descriptions:
        response.outputs = restore(response.outputs, descriptions)
    if index in extras.get("errors", {}):
        response.error = decode_named_error(extras["errors"][index])
    response.parameters = extras.get("parameters", {}).get(index, NO_PARAMETERS)
    response.model_name = extras.get("names", {}).get(index, response.model_name)
    response.id = extras.get("ids", {}).get(index, response.id)
