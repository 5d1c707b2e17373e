"""Requests that are like earlier ones: clients say of a model's tensors the same again and again, and only the data differs.

A ModelInferRequest as libraries write it has its data last. What comes before it is compared with what was decoded before; then the tensors are
views on the message, and nothing of it is parsed or copied. Pure; knows no transport.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tritonpy import DTYPES, InferRequest, OutputSpec
from tritonpy_frontend_grpc.forms import Form, KnownForms
from tritonpy_frontend_grpc.parameters import SEQUENCE_KEYS, wants_empty_final
from tritonpy_frontend_grpc.sequence_entries import is_of_sequence
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

if TYPE_CHECKING:
    import numpy.typing as npt

LONGEST = 2048  # bytes of a head that is remembered
MOST = 512  # layouts; clients that say something else each time must not fill the memory
MOST_SEEN = 4096
_LENGTH_DELIMITED = 2  # the wire type of all fields of the message
_LONGEST_SIZE = 5  # bytes of a size: no message has more than 2 GiB
_LAST = 0x7F  # tags above it go on in the next byte: no field of the message has one
_PARAMETER = ModelInferRequest.PARAMETERS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_ID = ModelInferRequest.ID_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_RAW = ModelInferRequest.RAW_INPUT_CONTENTS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED


Span = tuple[int, int]


class Outline(NamedTuple):
    """What a message looks like: all that precedes its data but its id and its sequence, where the id begins and ends (0, 0: it has none), each
    piece of data, and the fields that speak of the sequence.
    """

    head: bytes
    id_span: Span
    spans: Sequence[Span]
    sequence: Sequence[Span]


class InputLayout(NamedTuple):
    """An input: `nbytes` of data that are an array of `extent` and `dtype`. Strings may have any size, and `nbytes` is -1."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    extent: tuple[int, ...]
    dtype: npt.DTypeLike
    nbytes: int


class Layout(NamedTuple):
    """What a head says, the version also in the client's own words. `outputs` are the same for all requests: nobody changes them."""

    model_name: str
    model_version: int
    version_text: str
    empty_final: bool
    inputs: tuple[InputLayout, ...]
    outputs: dict[str, OutputSpec] | None
    priority: int
    timeout_us: int
    classifies: bool


class KnownLayouts:
    """Finds the layout of a request by the bytes of its head."""

    def __init__(self) -> None:
        self._layouts: dict[bytes, Layout] = {}
        self._forms = KnownForms()
        self._seen: set[int] = set()

    def find(self, raw: bytes) -> Form | None:
        """Return what `raw` has in common with a message that was met before, None where its like was not."""
        return self._forms.find(raw) or self._formed(raw)

    def _formed(self, raw: bytes) -> Form | None:
        outline = outline_of(raw)
        layout = None if outline is None else self._layouts.get(outline.head)
        if outline is None or layout is None or not _has_its_data(layout.inputs, outline.spans):
            return None
        form = Form(raw, layout, outline)
        self._forms.remember(form, len(raw))
        return form

    def learn(self, raw: bytes, message: ModelInferRequest, request: InferRequest) -> None:
        """Remember what `raw` was parsed and decoded as, when its like comes for the second time and is plain: all data raw, no parameters of the model."""
        outline = outline_of(raw)
        if outline is None or len(outline.spans) != len(request.inputs) or not _is_plain(request):
            return
        sight = hash(outline.head)
        if sight not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen.add(sight)
            return
        if not _says_the_rest(outline.head, message):
            return
        if len(self._layouts) >= MOST:
            self._layouts.clear()
        self._layouts[outline.head] = _layout(message, request)


def outline_of(raw: bytes) -> Outline | None:
    """Return the outline of a message, None where it is written in an unusual way, has no raw data, or ends too early."""
    at, id_at, id_end = 0, 0, 0
    left_out: list[Span] = []
    sequence: list[Span] = []
    try:
        while (tag := raw[at]) != _RAW:
            size, start = raw[at + 1], at + 2
            if size > 0x7F:
                size, start = _varint(raw, at + 1)
            if tag & 7 != _LENGTH_DELIMITED or tag > _LAST or start + size > LONGEST or (tag == _ID and id_end):
                return None
            if tag == _ID:
                id_at, id_end = start, start + size
                left_out.append((at, id_end))
            elif tag == _PARAMETER and is_of_sequence(raw, start):
                _append(sequence, at, start + size)
                left_out.append((at, start + size))
            at = start + size
        head = _without(raw[:at], left_out)
        spans: list[Span] = []
        while at < len(raw):
            if raw[at] != _RAW or len(spans) == LONGEST:
                return None
            size, start = raw[at + 1], at + 2
            if size > 0x7F:
                size, start = _varint(raw, at + 1)
            at = start + size
            spans.append((start, at))
    except IndexError:
        return None
    return Outline(head, (id_at, id_end), spans, sequence) if at == len(raw) else None


def _append(spans: list[Span], start: int, end: int) -> None:
    """Append a span, or make it a part of the last: neighbours come in any order."""
    if spans and spans[-1][1] == start:
        start = spans.pop()[0]
    spans.append((start, end))


def _without(head: bytes, spans: Sequence[Span]) -> bytes:
    if not spans:
        return head
    edges = [0, *[edge for span in spans for edge in span], len(head)]
    return b"".join([head[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)])


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at `at`, and where it ends. Raises IndexError where it ends nowhere, or is too long to be a size."""
    value = 0
    for shift in range(0, 7 * _LONGEST_SIZE, 7):
        part = raw[at]
        at += 1
        value |= (part & 0x7F) << shift
        if part <= 0x7F:
            return value, at
    raise IndexError


def _has_its_data(layouts: Sequence[InputLayout], spans: Sequence[tuple[int, int]]) -> bool:
    return len(layouts) == len(spans) and all(
        [layout.nbytes in (-1, end - start) for layout, (start, end) in zip(layouts, spans, strict=True)]
    )


def _says_the_rest(head: bytes, message: ModelInferRequest) -> bool:
    """Say whether a head says of the parameters all that is not said of the sequence, and nothing of the sequence.

    An entry that is written as no library does it, with the key behind the value or with two keys, speaks for its own message alone.
    """
    others = {key: value for key, value in message.parameters.items() if key not in SEQUENCE_KEYS}
    return {**ModelInferRequest.FromString(head).parameters} == others


def _is_plain(request: InferRequest) -> bool:
    if request.uses_regions or request.parameters:
        return False
    # data that does not fit its shape is refused, with its size in the text
    return all(
        [
            tensor.datatype == "BYTES" or (tensor.datatype in DTYPES and tensor.data.shape == tensor.shape)
            for tensor in request.inputs.values()
        ]
    )


def _layout(message: ModelInferRequest, request: InferRequest) -> Layout:
    inputs = [
        InputLayout(
            tensor.name,
            tensor.datatype,
            tensor.shape,
            tensor.data.shape,
            tensor.data.dtype,
            -1 if tensor.datatype == "BYTES" else tensor.data.nbytes,
        )
        for tensor in request.inputs.values()
    ]
    return Layout(
        request.model_name,
        request.model_version,
        message.model_version,
        wants_empty_final(message.parameters),
        tuple(inputs),
        request.outputs,
        request.priority,
        request.timeout_us,
        request.classifies,
    )
