"""Cache of decoded JSON headers: clients describe the tensors of a model identically every time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import UNSET

from tritonpy import InferRequest, OutputSpec, SequenceInfo
from tritonpy_http_api.header import InferHeader

MAX_JSON_BYTES = 2048  # bytes of cached JSON
MAX_LAYOUTS = 512  # layouts; bounds the memory if headers never repeat
MAX_SEEN = 4096
_LITERAL_CHARACTER = rb"[ !#-\[\]-~]"  # characters that JSON does not escape
_ID_START = b'{"id":"'
_ID = re.compile(rb'\%b(%b*)",' % (_ID_START, _LITERAL_CHARACTER)).match
_SEQUENCE_ID = b'"sequence_id":'
# Numbers of 19 digits fit in 64 bits; 0 means no sequence.
_SEQUENCE = re.compile(
    rb'%b(?:([1-9][0-9]{0,18})|"(%b+)"),"sequence_start":(true|false),"sequence_end":(true|false)'
    % (_SEQUENCE_ID, _LITERAL_CHARACTER)
).match
_IGNORED_KEY = re.compile(rb'"(?:id|sequence_id|sequence_start|sequence_end)"\s*:').search
_CACHEABLE_PARAMETERS = {
    "binary_data_output",
    "sequence_id",
    "sequence_start",
    "sequence_end",
}  # other parameters are not cached


class JsonInputLayout(NamedTuple):
    """Position and type of an input after the JSON.

    `extent` and `dtype` describe the view on the bytes.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    extent: tuple[int, ...]
    dtype: Any
    offset: int


@dataclass(slots=True)
class JsonLayout:
    """The decoded JSON of a request whose inputs are all binary.

    `size` is their total size in bytes.
    """

    inputs: tuple[JsonInputLayout, ...]
    size: int
    outputs: dict[str, OutputSpec] | None  # shared by all requests, must not be modified
    classifies: bool
    binary: bool  # whether outputs that it does not name are binary


class JsonLayoutCache:
    """Maps the bytes of the JSON to its layout, from any thread.

    The key omits the parts that change with every request: the id, if it comes first, and the
    sequence parameters, if they are contiguous.
    """

    def __init__(self) -> None:
        # Separate: a key without its sequence parameters is not valid JSON. It must not match the
        # JSON of a request that has no sequence.
        self._layouts: dict[bytes, JsonLayout] = {}
        self._sequence_layouts: dict[bytes, JsonLayout] = {}
        self._seen: set[int] = set()

    def find(self, raw: bytes) -> tuple[JsonLayout | None, str, SequenceInfo | None]:
        """Return the cached layout of the JSON `raw`, or None; the request's id; its sequence."""
        layout = None if raw.startswith(_ID_START) else self._layouts.get(raw)
        if layout is not None:
            return layout, "", None
        identity, sequence, rest = _split(raw)
        return self._table(sequence).get(rest), identity, sequence

    def learn(self, raw: bytes, header: InferHeader, request: InferRequest, binary: bool) -> None:
        """Cache the layout of `raw` at its second occurrence, if it is plain.

        Plain means that all inputs are binary and all parameters are cacheable. `request` is the
        decoded `raw`.
        """
        identity, sequence, rest = _split(raw)
        if (
            header.id != identity
            or request.sequence != sequence
            or not (_has_no_ignored_keys(rest) and _is_plain(header, request))
        ):
            return
        fingerprint = hash((rest, sequence is None))
        if fingerprint not in self._seen:
            if len(self._seen) >= MAX_SEEN:
                self._seen.clear()
            self._seen.add(fingerprint)
            return
        table = self._table(sequence)
        if len(table) >= MAX_LAYOUTS:
            table.clear()
        table[rest] = _layout(request, binary)

    def _table(self, sequence: SequenceInfo | None) -> dict[bytes, JsonLayout]:
        return self._layouts if sequence is None else self._sequence_layouts


def _split(raw: bytes) -> tuple[str, SequenceInfo | None, bytes]:
    """Return id, sequence and the remaining bytes of `raw`.

    Id and sequence are "" and None if they cannot be separated.
    """
    head = _ID(raw)
    if head is None:
        identity = ""
    else:
        identity = head[1].decode()
        # Keep the brace: the text after the id alone is not valid JSON and must not match.
        raw = b"{" + raw[head.end() :]
    at = raw.find(_SEQUENCE_ID)
    found = _SEQUENCE(raw, at) if at >= 0 else None
    if found is None:
        return identity, None, raw
    number, text, start, end = found.groups()
    sequence = SequenceInfo(
        int(number) if number else text.decode(), start == b"true", end == b"true"
    )
    return identity, sequence, raw[:at] + raw[found.end() :]


def _has_no_ignored_keys(rest: bytes) -> bool:
    """Return whether `rest` repeats no omitted key; a repeated key would take precedence.

    False for text with escapes, which could spell any key.
    """
    return b"\\" not in rest and _IGNORED_KEY(rest) is None


def _is_plain(header: InferHeader, request: InferRequest) -> bool:
    if request.uses_regions or (
        header.parameters and not header.parameters.keys() <= _CACHEABLE_PARAMETERS
    ):
        return False
    return all([each.data is UNSET for each in header.inputs])


def _layout(request: InferRequest, binary: bool) -> JsonLayout:
    inputs: list[JsonInputLayout] = []
    offset = 0
    for tensor in request.inputs.values():
        data = tensor.data
        inputs.append(
            JsonInputLayout(
                tensor.name, tensor.datatype, tensor.shape, data.shape, data.dtype, offset
            )
        )
        offset += data.nbytes
    return JsonLayout(tuple(inputs), offset, request.outputs, request.classifies, binary)
