"""Messages that are the same but for their data and the bytes of their id and sequence: two or three comparisons tell them, and where everything lies is known.

Pure; knows no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tritonpy import InferRequest, InvalidArgument, SequenceInfo, Sink, Tensor, now_ns
from tritonpy_frontend_grpc.sequence_entries import sequence_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from tritonpy_frontend_grpc.known_layouts import Layout, Outline

EACH_LENGTH = 4  # forms that are remembered of one length
MOST_LENGTHS = 512  # clients that send another length each time must not fill the memory


class Place(NamedTuple):
    """A tensor in a message: an array of `extent` and `dtype` that begins at `start`."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    extent: tuple[int, ...] | int
    dtype: npt.DTypeLike
    start: int


class Form:
    """What the messages of one form have in common: the length, the layout, and every byte but those of the id, the data and what it says of its sequence."""

    __slots__ = ("_fixed", "_id", "_places", "_sequence", "layout")

    def __init__(self, raw: bytes, layout: Layout, outline: Outline) -> None:
        self.layout = layout
        self._id = outline.id_span
        self._sequence = outline.sequence
        holes = sorted([span for span in (outline.id_span, *outline.sequence, *outline.spans) if span[0] < span[1]])
        edges = [0, *[edge for hole in holes for edge in hole], len(raw)]
        self._fixed = [(start, end, raw[start:end]) for start, end in zip(edges[::2], edges[1::2], strict=True)]
        self._places = [
            Place(
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
        """Say whether a message of the same length has this form."""
        for start, end, fixed in self._fixed:  # noqa: SIM110 - asked of each request, and half as fast as an expression
            if raw[start:end] != fixed:
                return False
        return True

    def request(self, raw: bytes, sink: Sink) -> InferRequest | None:
        """Return the request that a message of this form is; None where it has to be parsed to say what is wrong with its id or its sequence."""
        received_ns = now_ns()
        try:
            request_id = self.id(raw) if self._id[1] else ""
            sequence = self._sequence_of(raw) if self._sequence else None
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

    def _sequence_of(self, raw: bytes) -> SequenceInfo | None:
        return sequence_of(tuple([raw[start:end] for start, end in self._sequence]))

    def inputs(self, raw: bytes) -> dict[str, Tensor]:
        """Return the tensors of a message that has this form, as views."""
        return {
            name: Tensor(name, datatype, shape, np.ndarray(extent, dtype, raw, start))
            for name, datatype, shape, extent, dtype, start in self._places
        }

    def id(self, raw: bytes) -> str:
        """Return the id of a message that has this form. Raises UnicodeDecodeError."""
        start, end = self._id
        return raw[start:end].decode() if end else ""


class KnownForms:
    """Finds the form of a message by its length, among the few that are remembered of each."""

    def __init__(self) -> None:
        self._forms: dict[int, list[Form]] = {}

    def find(self, raw: bytes) -> Form | None:
        """Return the form of `raw`, None where no message like it was remembered."""
        for form in self._forms.get(len(raw), ()):
            if form.fits(raw):
                return form
        return None

    def remember(self, form: Form, length: int) -> None:
        """Know messages of this form and length from now on; the oldest of many of one length is forgotten."""
        if length not in self._forms and len(self._forms) >= MOST_LENGTHS:
            self._forms.clear()
        self._forms[length] = [form, *self._forms.get(length, ())][:EACH_LENGTH]
