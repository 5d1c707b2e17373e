"""Templates of messages that differ only in data, id and sequence parameters.

Two or three comparisons identify such a message, and the positions of all fields are known.
Independent of the transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tritonpy import InferRequest, InvalidArgument, SequenceInfo, Sink, Tensor, now_ns
from tritonpy_frontend_grpc.sequence_entries import parse_sequence

if TYPE_CHECKING:
    import numpy.typing as npt

    from tritonpy_frontend_grpc.layout_cache import MessageLayout, MessageOutline

TEMPLATES_PER_LENGTH = 4  # templates kept for one message length
MAX_LENGTHS = 512  # bounds the memory if lengths never repeat


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
        holes = sorted([span for span in (outline.id_span, *outline.sequence, *outline.spans) if span[0] < span[1]])
        edges = [0, *[edge for hole in holes for edge in hole], len(raw)]
        self._fixed = [(start, end, raw[start:end]) for start, end in zip(edges[::2], edges[1::2], strict=True)]
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
        self._templates[length] = [template, *self._templates.get(length, ())][:TEMPLATES_PER_LENGTH]
