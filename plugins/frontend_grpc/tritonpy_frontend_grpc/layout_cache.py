"""Cache of decoded message heads: clients describe the tensors of a model identically every time.

Libraries write the data of a ModelInferRequest last. If the bytes before it match an earlier
message, the tensors become views on the message, and nothing is parsed or copied. Independent of
the transport.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from tritonpy import DTYPES, InferRequest, InvalidArgument, OutputSpec, SequenceInfo, Tensor, now_ns
from tritonpy.frontend import Sink
from tritonpy_frontend_grpc.parameters import SEQUENCE_KEYS, parse_parameters, wants_empty_final
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

if TYPE_CHECKING:
    import numpy.typing as npt

    from tritonpy_protos.grpc_service_pb2 import InferParameter


MAX_HEAD_BYTES = 2048  # bytes of a cached head
MAX_LAYOUTS = 512  # layouts; bounds the memory if heads never repeat
MAX_SEEN = 4096
_LENGTH_DELIMITED = 2  # the wire type of all fields of the message
_LONGEST_SIZE = 5  # bytes of a size: no message has more than 2 GiB
_LAST = 0x7F  # larger tags take two bytes; no field of the message has one
_PARAMETER = ModelInferRequest.PARAMETERS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_ID = ModelInferRequest.ID_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_RAW = ModelInferRequest.RAW_INPUT_CONTENTS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED


Span = tuple[int, int]
TEMPLATES_PER_LENGTH = 4  # templates kept for one message length
MAX_LENGTHS = 512  # bounds the memory if lengths never repeat
# A map entry is a message. Its key is field 1, which libraries write first.
_ENTRY_STARTS = tuple([b"\x0a" + bytes([len(key)]) + key.encode() for key in SEQUENCE_KEYS])


class MessageOutline(NamedTuple):
    """The structure of a message.

    `head` is everything before the data, without id and sequence parameters. `id_span` is (0, 0) if
    there is no id. `spans` are the pieces of data, `sequence` those of the sequence parameters.
    """

    head: bytes
    id_span: Span
    spans: Sequence[Span]
    sequence: Sequence[Span]


class MessageInputLayout(NamedTuple):
    """An input: `nbytes` of data, viewed as an array of shape `extent` and type `dtype`.

    `nbytes` is -1 for strings, which may have any size.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    extent: tuple[int, ...]
    dtype: npt.DTypeLike
    nbytes: int


class MessageLayout(NamedTuple):
    """The decoded head.

    `version_text` is as sent; `outputs` are shared by requests: do not modify them.
    """

    model_name: str
    model_version: int
    version_text: str
    empty_final: bool
    inputs: tuple[MessageInputLayout, ...]
    outputs: dict[str, OutputSpec] | None
    priority: int
    timeout_us: int
    classifies: bool


class MessageLayoutCache:
    """Maps the bytes of a head to its layout."""

    def __init__(self) -> None:
        self._layouts: dict[bytes, MessageLayout] = {}
        self._templates = TemplateCache()
        self._seen: set[int] = set()

    def find(self, raw: bytes) -> MessageTemplate | None:
        """Return the template for `raw`, or None if no similar message is cached."""
        return self._templates.find(raw) or self._make_template(raw)

    def _make_template(self, raw: bytes) -> MessageTemplate | None:
        outline = read_outline(raw)
        layout = None if outline is None else self._layouts.get(outline.head)
        if (
            outline is None
            or layout is None
            or not _has_matching_data(layout.inputs, outline.spans)
        ):
            return None
        template = MessageTemplate(raw, layout, outline)
        self._templates.remember(template, len(raw))
        return template

    def learn(self, raw: bytes, message: ModelInferRequest, request: InferRequest) -> None:
        """Cache the layout of `raw` at the second occurrence of its head, if it is plain.

        Plain means that all data is raw and no parameters are for the model.
        """
        outline = read_outline(raw)
        if outline is None or len(outline.spans) != len(request.inputs) or not _is_plain(request):
            return
        fingerprint = hash(outline.head)
        if fingerprint not in self._seen:
            if len(self._seen) >= MAX_SEEN:
                self._seen.clear()
            self._seen.add(fingerprint)
            return
        if not _is_complete(outline.head, message):
            return
        if len(self._layouts) >= MAX_LAYOUTS:
            self._layouts.clear()
        self._layouts[outline.head] = _layout(message, request)


def read_outline(raw: bytes) -> MessageOutline | None:
    """Return the outline of a message.

    None if it has an unusual encoding or no raw data, or is truncated.
    """
    at, id_at, id_end = 0, 0, 0
    left_out: list[Span] = []
    sequence: list[Span] = []
    try:
        while (tag := raw[at]) != _RAW:
            size, start = raw[at + 1], at + 2
            if size > 0x7F:
                size, start = _varint(raw, at + 1)
            if (
                tag & 7 != _LENGTH_DELIMITED
                or tag > _LAST
                or start + size > MAX_HEAD_BYTES
                or (tag == _ID and id_end)
            ):
                return None
            if tag == _ID:
                id_at, id_end = start, start + size
                left_out.append((at, id_end))
            elif tag == _PARAMETER and is_sequence_entry(raw, start):
                _append(sequence, at, start + size)
                left_out.append((at, start + size))
            at = start + size
        head = _without(raw[:at], left_out)
        spans: list[Span] = []
        while at < len(raw):
            if raw[at] != _RAW or len(spans) == MAX_HEAD_BYTES:
                return None
            size, start = raw[at + 1], at + 2
            if size > 0x7F:
                size, start = _varint(raw, at + 1)
            at = start + size
            spans.append((start, at))
    except IndexError:
        return None
    return MessageOutline(head, (id_at, id_end), spans, sequence) if at == len(raw) else None


def _append(spans: list[Span], start: int, end: int) -> None:
    """Append a span, or extend the last span if the two are adjacent.

    Map entries have no fixed order, so their spans may or may not be adjacent.
    """
    if spans and spans[-1][1] == start:
        start = spans.pop()[0]
    spans.append((start, end))


def _without(head: bytes, spans: Sequence[Span]) -> bytes:
    if not spans:
        return head
    edges = [0, *[edge for span in spans for edge in span], len(head)]
    return b"".join([head[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)])


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return the varint at `at` and its end. Raises IndexError if it is truncated or too long."""
    value = 0
    for shift in range(0, 7 * _LONGEST_SIZE, 7):
        part = raw[at]
        at += 1
        value |= (part & 0x7F) << shift
        if part <= 0x7F:
            return value, at
    raise IndexError


def _has_matching_data(
    layouts: Sequence[MessageInputLayout], spans: Sequence[tuple[int, int]]
) -> bool:
    return len(layouts) == len(spans) and all(
        [
            layout.nbytes in (-1, end - start)
            for layout, (start, end) in zip(layouts, spans, strict=True)
        ]
    )


def _is_complete(head: bytes, message: ModelInferRequest) -> bool:
    """Return whether the parameters in a head are exactly those that are not of the sequence.

    False if an entry has an unusual encoding, such as the key after the value or two keys.
    """
    others = {key: value for key, value in message.parameters.items() if key not in SEQUENCE_KEYS}
    return {**ModelInferRequest.FromString(head).parameters} == others


def _is_plain(request: InferRequest) -> bool:
    if request.uses_regions or request.parameters:
        return False
    # Data that does not fit its shape is not cached: the engine's error contains its size.
    return all(
        [
            tensor.datatype == "BYTES"
            or (tensor.datatype in DTYPES and tensor.data.shape == tensor.shape)
            for tensor in request.inputs.values()
        ]
    )


def _layout(message: ModelInferRequest, request: InferRequest) -> MessageLayout:
    inputs = [
        MessageInputLayout(
            tensor.name,
            tensor.datatype,
            tensor.shape,
            tensor.data.shape,
            tensor.data.dtype,
            -1 if tensor.datatype == "BYTES" else tensor.data.nbytes,
        )
        for tensor in request.inputs.values()
    ]
    return MessageLayout(
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


class TensorPlace(NamedTuple):
    """The position of a tensor in a message: shape `extent`, type `dtype`, first byte `start`."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    extent: tuple[int, ...] | int
    dtype: npt.DTypeLike
    start: int


class MessageTemplate:
    """The common parts of similar messages.

    These are the length, the layout, and all bytes except id, data and sequence.
    """

    __slots__ = ("_fixed", "_id", "_places", "_sequence", "layout")

    def __init__(self, raw: bytes, layout: MessageLayout, outline: MessageOutline) -> None:
        self.layout = layout
        self._id = outline.id_span
        self._sequence = outline.sequence
        holes = sorted(
            [
                span
                for span in (outline.id_span, *outline.sequence, *outline.spans)
                if span[0] < span[1]
            ]
        )
        edges = [0, *[edge for hole in holes for edge in hole], len(raw)]
        self._fixed = [
            (start, end, raw[start:end]) for start, end in zip(edges[::2], edges[1::2], strict=True)
        ]
        self._places = [
            TensorPlace(
                each.name,
                each.datatype,
                each.shape,
                each.extent if each.nbytes >= 0 else end - start,
                each.dtype,
                start,
            )
            for each, (start, end) in zip(layout.inputs, outline.spans, strict=True)
        ]

    def fits(self, raw: bytes) -> bool:
        """Return whether a message of the same length matches this template."""
        for start, end, fixed in self._fixed:  # noqa: SIM110 - runs per request; all() would take twice as long
            if raw[start:end] != fixed:
                return False
        return True

    def request(self, raw: bytes, sink: Sink) -> InferRequest | None:
        """Return the request in a matching message, or None if its id or sequence is invalid.

        The caller must then parse the message to report the error.
        """
        received_ns = now_ns()
        try:
            request_id = self.id(raw) if self._id[1] else ""
            sequence = self._parse_sequence(raw) if self._sequence else None
        except (UnicodeDecodeError, InvalidArgument):
            return None
        layout = self.layout
        return InferRequest(
            layout.model_name,
            self.inputs(raw),
            sink,
            layout.model_version,
            request_id,
            layout.outputs,
            priority=layout.priority,
            timeout_us=layout.timeout_us,
            sequence=sequence,
            classifies=layout.classifies,
            received_ns=received_ns,
        )

    def _parse_sequence(self, raw: bytes) -> SequenceInfo | None:
        return parse_sequence(tuple([raw[start:end] for start, end in self._sequence]))

    def inputs(self, raw: bytes) -> dict[str, Tensor]:
        """Return the tensors of a matching message, as views."""
        return {
            name: Tensor(name, datatype, shape, np.ndarray(extent, dtype, raw, start))
            for name, datatype, shape, extent, dtype, start in self._places
        }

    def id(self, raw: bytes) -> str:
        """Return the id of a matching message. Raises UnicodeDecodeError."""
        start, end = self._id
        return raw[start:end].decode() if end else ""


class TemplateCache:
    """Finds the template of a message. It keeps a few templates for each message length."""

    def __init__(self) -> None:
        self._templates: dict[int, list[MessageTemplate]] = {}

    def find(self, raw: bytes) -> MessageTemplate | None:
        """Return the template that `raw` matches, or None."""
        for template in self._templates.get(len(raw), ()):
            if template.fits(raw):
                return template
        return None

    def remember(self, template: MessageTemplate, length: int) -> None:
        """Add a template for messages of `length` bytes.

        The oldest one of that length may be dropped.
        """
        if length not in self._templates and len(self._templates) >= MAX_LENGTHS:
            self._templates.clear()
        self._templates[length] = [template, *self._templates.get(length, ())][
            :TEMPLATES_PER_LENGTH
        ]


def is_sequence_entry(raw: bytes, start: int) -> bool:
    """Return whether the map entry at `start` is a sequence parameter."""
    return raw.startswith(_ENTRY_STARTS, start)


@lru_cache(maxsize=4096)
def parse_sequence(pieces: tuple[bytes, ...]) -> SequenceInfo | None:
    """Return the sequence in pieces of a message, each of complete fields; None for no sequence.

    Raises InvalidArgument if a parameter is invalid or a piece contains other fields. The caller
    then parses the complete message.
    """
    parameters: dict[str, InferParameter] = {}
    for piece in pieces:  # not joined: a truncated field would continue in the next piece
        parameters.update(_parameters(piece))
    return parse_parameters(parameters).sequence


def _parameters(piece: bytes) -> Mapping[str, InferParameter]:
    try:
        message = ModelInferRequest.FromString(piece)
    except DecodeError:
        raise InvalidArgument("the parameters are not valid") from None
    parameters = message.parameters
    if [field.name for field, _ in message.ListFields()] != [
        "parameters"
    ] or not SEQUENCE_KEYS.issuperset(parameters):
        raise InvalidArgument("the entry is not a sequence parameter")
    return parameters
