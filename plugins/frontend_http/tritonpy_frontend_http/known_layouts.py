"""JSON parts of requests that were read before: clients describe the tensors of a model in the same words again and again."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from msgspec import UNSET

from tritonpy import InferRequest, OutputSpec, SequenceInfo
from tritonpy_frontend_http.header import InferHeader

LONGEST = 2048  # bytes of JSON that are remembered
MOST = 512  # layouts; clients that say something else each time must not fill the memory
MOST_SEEN = 4096
_PLAIN_TEXT = rb"[ !#-\[\]-~]"  # what stands in JSON for itself
_ID = re.compile(rb'\{"id":"(%b*)",' % _PLAIN_TEXT).match
_SEQUENCE_ID = b'"sequence_id":'
# 19 digits are less than 64 bits hold; 0 is no sequence.
_SEQUENCE = re.compile(
    rb'%b(?:([1-9][0-9]{0,18})|"(%b+)"),"sequence_start":(true|false),"sequence_end":(true|false)'
    % (_SEQUENCE_ID, _PLAIN_TEXT)
).match
_LEFT_OUT = re.compile(rb'"(?:id|sequence_id|sequence_start|sequence_end)"\s*:').search
_UNDERSTOOD = {
    "binary_data_output",
    "sequence_id",
    "sequence_start",
    "sequence_end",
}  # parameters that a layout stands for


class InputLayout(NamedTuple):
    """Where an input lies behind the JSON, and the array that it is: `extent` and `dtype` are those of the view on the bytes."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    extent: tuple[int, ...]
    dtype: Any
    offset: int


class Layout(NamedTuple):
    """What the JSON of a plain request says: all inputs are binary. `size` is that of the tensors together, in bytes."""

    inputs: tuple[InputLayout, ...]
    size: int
    outputs: dict[str, OutputSpec] | None  # the same for all requests: nobody changes it
    classifies: bool
    binary: bool  # outputs that it does not name are to be binary


class KnownLayouts:
    """Finds the layout of a request by the bytes of its JSON, from any thread.

    What changes from request to request is left out of what is remembered: the request's own id where that comes first, and
    what it says of its sequence where that is said in one piece.
    """

    def __init__(self) -> None:
        # Apart: what is left of a request without its sequence is no JSON, and must not be known as a request without one.
        self._layouts: dict[bytes, Layout] = {}
        self._of_sequences: dict[bytes, Layout] = {}
        self._seen: set[int] = set()

    def find(self, raw: bytes) -> tuple[Layout | None, str, SequenceInfo | None]:
        """Return the layout that the JSON `raw` stands for, None where it is unknown, and id and sequence of the request."""
        layout = self._layouts.get(raw)
        if layout is not None:
            return layout, "", None
        identity, sequence, rest = _split(raw)
        return self._table(sequence).get(rest), identity, sequence

    def learn(self, raw: bytes, header: InferHeader, request: InferRequest, binary: bool) -> None:
        """Remember what `raw` was read as, when it comes for the second time and is plain: `request`, its outputs `binary` or not."""
        identity, sequence, rest = _split(raw)
        if (
            header.id != identity
            or request.sequence != sequence
            or not (_says_once(rest) and _is_plain(header, request))
        ):
            return
        sight = hash((rest, sequence is None))
        if sight not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen.add(sight)
            return
        table = self._table(sequence)
        if len(table) >= MOST:
            table.clear()
        table[rest] = _layout(request, binary)

    def _table(self, sequence: SequenceInfo | None) -> dict[bytes, Layout]:
        return self._layouts if sequence is None else self._of_sequences


def _split(raw: bytes) -> tuple[str, SequenceInfo | None, bytes]:
    """Return id and sequence of `raw`, "" and None where they are not told apart from the rest, and that rest."""
    head = _ID(raw)
    if head is None:
        identity = ""
    else:
        identity = head[1].decode()
        # With its brace: what follows the id is no JSON by itself, and must not be known as such.
        raw = b"{" + raw[head.end() :]
    at = raw.find(_SEQUENCE_ID)
    said = _SEQUENCE(raw, at) if at >= 0 else None
    if said is None:
        return identity, None, raw
    number, text, start, end = said.groups()
    sequence = SequenceInfo(int(number) if number else text.decode(), start == b"true", end == b"true")
    return identity, sequence, raw[:at] + raw[said.end() :]


def _says_once(rest: bytes) -> bool:
    """Say whether what may be left out is said nowhere in the rest: there it would count instead. Escapes may spell anything."""
    return b"\\" not in rest and _LEFT_OUT(rest) is None


def _is_plain(header: InferHeader, request: InferRequest) -> bool:
    if request.uses_regions or (header.parameters and not header.parameters.keys() <= _UNDERSTOOD):
        return False
    return all([each.data is UNSET for each in header.inputs])


def _layout(request: InferRequest, binary: bool) -> Layout:
    inputs: list[InputLayout] = []
    offset = 0
    for tensor in request.inputs.values():
        data = tensor.data
        inputs.append(InputLayout(tensor.name, tensor.datatype, tensor.shape, data.shape, data.dtype, offset))
        offset += data.nbytes
    return Layout(tuple(inputs), offset, request.outputs, request.classifies, binary)
