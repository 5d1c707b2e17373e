"""Requests that are like earlier ones: clients say of a model's tensors the same again and again, and only the data differs.

A ModelInferRequest as libraries write it has its data last. What comes before it is compared with what was decoded before; then the tensors are
views on the message, and nothing of it is parsed or copied. Pure; knows no transport.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tritonpy import DTYPES, InferRequest, OutputSpec, Sink, now_ns
from tritonpy_frontend_grpc.forms import Form, KnownForms
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

if TYPE_CHECKING:
    import numpy.typing as npt

LONGEST = 2048  # bytes of a head that is remembered
MOST = 512  # layouts; clients that say something else each time must not fill the memory
MOST_SEEN = 4096
_LENGTH_DELIMITED = 2  # the wire type of all fields of the message
_LAST = 0x7F  # tags above it go on in the next byte: no field of the message has one
_ID = ModelInferRequest.ID_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_RAW = ModelInferRequest.RAW_INPUT_CONTENTS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED


class Outline(NamedTuple):
    """What a message looks like: all that precedes its data but its id, where that begins and ends (0, 0: it has none), and each piece of data."""

    head: bytes
    id_span: tuple[int, int]
    spans: Sequence[tuple[int, int]]


class InputLayout(NamedTuple):
    """An input: `nbytes` of data that are an array of `extent` and `dtype`. Strings may have any size, and `nbytes` is -1."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    extent: tuple[int, ...]
    dtype: npt.DTypeLike
    nbytes: int


class Layout(NamedTuple):
    """What a head says. `outputs` are the same for all requests: nobody changes them."""

    model_name: str
    model_version: int
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

    def read(self, raw: bytes, sink: Sink) -> InferRequest | None:
        """Return the request that `raw` is, None where its like was not met before."""
        received_ns = now_ns()
        form = self._forms.find(raw) or self._formed(raw)
        if form is None:
            return None
        try:
            request_id = form.id(raw)
        except UnicodeDecodeError:  # it is refused where all of it is parsed
            return None
        layout = form.layout
        return InferRequest(
            layout.model_name,
            form.inputs(raw),
            sink,
            layout.model_version,
            request_id,
            layout.outputs,
            priority=layout.priority,
            timeout_us=layout.timeout_us,
            classifies=layout.classifies,
            received_ns=received_ns,
        )

    def _formed(self, raw: bytes) -> Form | None:
        outline = outline_of(raw)
        layout = None if outline is None else self._layouts.get(outline.head)
        if outline is None or layout is None or not _has_its_data(layout.inputs, outline.spans):
            return None
        form = Form(raw, layout, outline)
        self._forms.remember(form, len(raw))
        return form

    def learn(self, raw: bytes, request: InferRequest) -> None:
        """Remember what `raw` was decoded as, when its like comes for the second time and is plain: all of its data raw, no parameters of the model's own."""
        outline = outline_of(raw)
        if outline is None or len(outline.spans) != len(request.inputs) or not _is_plain(request):
            return
        sight = hash(outline.head)
        if sight not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen.add(sight)
            return
        if len(self._layouts) >= MOST:
            self._layouts.clear()
        self._layouts[outline.head] = _layout(request)


def outline_of(raw: bytes) -> Outline | None:
    """Return the outline of a message, None where it is written in an unusual way, has no raw data, or ends too early."""
    at, id_start, id_at, id_end = 0, 0, 0, 0
    try:
        while (tag := raw[at]) != _RAW:
            size, start = raw[at + 1], at + 2
            if size > 0x7F:
                size, start = _varint(raw, at + 1)
            if tag & 7 != _LENGTH_DELIMITED or tag > _LAST or start + size > LONGEST or (tag == _ID and id_end):
                return None
            if tag == _ID:
                id_start, id_at, id_end = at, start, start + size
            at = start + size
        head = raw[:id_start] + raw[id_end:at]
        spans = []
        while at < len(raw):
            if raw[at] != _RAW:
                return None
            size, start = raw[at + 1], at + 2
            if size > 0x7F:
                size, start = _varint(raw, at + 1)
            at = start + size
            spans.append((start, at))
    except IndexError:
        return None
    return Outline(head, (id_at, id_end), spans) if at == len(raw) else None


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (part := raw[at]) > 0x7F:
        value |= (part & 0x7F) << shift
        shift += 7
        at += 1
    return value | part << shift, at + 1


def _has_its_data(layouts: Sequence[InputLayout], spans: Sequence[tuple[int, int]]) -> bool:
    return len(layouts) == len(spans) and all(
        [layout.nbytes in (-1, end - start) for layout, (start, end) in zip(layouts, spans, strict=True)]
    )


def _is_plain(request: InferRequest) -> bool:
    if request.uses_regions or request.parameters or request.sequence is not None:
        return False
    # data that does not fit its shape is refused, with its size in the text
    return all(
        [
            tensor.datatype == "BYTES" or (tensor.datatype in DTYPES and tensor.data.shape == tensor.shape)
            for tensor in request.inputs.values()
        ]
    )


def _layout(request: InferRequest) -> Layout:
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
        tuple(inputs),
        request.outputs,
        request.priority,
        request.timeout_us,
        request.classifies,
    )
