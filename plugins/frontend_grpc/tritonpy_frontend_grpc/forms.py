"""Messages that are the same but for their data and the bytes of their id and sequence: two or three comparisons tell them, and where everything lies is known.

Pure; knows no transport.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tritonpy import DTYPES, InferRequest, InvalidArgument, SequenceInfo, Sink, Tensor, now_ns
from tritonpy.ipc import Column, PlacedInputs, Signature, Stack
from tritonpy_frontend_grpc.sequence_entries import sequence_of
from tritonpy_frontend_grpc.wire.frames import PREFIX

if TYPE_CHECKING:
    import numpy.typing as npt

    from tritonpy_frontend_grpc.known_layouts import InputLayout, Layout, Outline

EACH_LENGTH = 4  # forms that are remembered of one length
MOST_STACKED = 4096  # bytes of a message whose inputs are copied beside those of others
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

    __slots__ = (
        "_fixed",
        "_framed",
        "_framed_length",
        "_has_rows",
        "_id",
        "_places",
        "_sequence",
        "_signature",
        "_spans",
        "layout",
    )

    def __init__(self, raw: bytes, layout: Layout, outline: Outline) -> None:
        self.layout = layout
        self._id = outline.id_span
        self._sequence = outline.sequence
        holes = sorted([span for span in (outline.id_span, *outline.sequence, *outline.spans) if span[0] < span[1]])
        edges = [0, *[edge for hole in holes for edge in hole], len(raw)]
        self._fixed = [(start, end, raw[start:end]) for start, end in zip(edges[::2], edges[1::2], strict=True)]
        framed = PREFIX.pack(0, len(raw)) + raw
        self._framed_length = len(framed)
        inner = [edge + PREFIX.size for edge in edges[1:]]
        self._framed = [
            (start, end, framed[start:end]) for start, end in zip([0, *inner[1::2]], inner[::2], strict=True)
        ]
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
        self._spans = outline.spans
        self._signature = Signature([_column(each) for each in layout.inputs], None)
        self._has_rows = all([each.shape for each in layout.inputs])

    def stacks(self, raw: bytes) -> bool:
        """Say whether the inputs of messages of this form may lie together, which copies them: few bytes, no texts, no scalars, not of a sequence."""
        return len(raw) <= MOST_STACKED and self._signature.sized and self._has_rows and not self._sequence

    def requests(self, raws: Sequence[bytes], sink: Sink) -> list[InferRequest | None]:
        """Return the requests that messages of this form are, as `request` does; their inputs lie together."""
        rows, now = self._stack(raws), now_ns()
        ids: Iterable[str | None] = map(self._readable_id, raws) if self._id[1] else repeat("", len(raws))
        return [
            None if request_id is None else self._request(PlacedInputs(rows, place), sink, request_id, None, now)
            for place, request_id in enumerate(ids)
        ]

    def _stack(self, raws: Sequence[bytes]) -> Stack:
        arrays = []
        for (start, end), column in zip(self._spans, self._signature.columns, strict=True):
            data = b"".join([raw[start:end] for raw in raws])
            rows, *others = column.shape
            arrays.append(np.ndarray((len(raws) * rows, *others), column.dtype, data))
        return Stack(self._signature, len(raws), arrays, Tensor)

    def fits(self, raw: bytes) -> bool:
        """Say whether a message of the same length has this form."""
        for start, end, fixed in self._fixed:  # noqa: SIM110 - asked of each request, and half as fast as an expression
            if raw[start:end] != fixed:
                return False
        return True

    def continues(self, framed: bytes | memoryview) -> bool:
        """Say whether these bytes are one message of this form with its prefix, not compressed."""
        if len(framed) != self._framed_length:
            return False
        for start, end, fixed in self._framed:  # noqa: SIM110 - as in `fits`
            if framed[start:end] != fixed:
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
        return self._request(self.inputs(raw), sink, request_id, sequence, received_ns)

    def _request(
        self, inputs: Any, sink: Sink, request_id: str, sequence: SequenceInfo | None, received_ns: int
    ) -> InferRequest:
        layout = self.layout
        return InferRequest(
            layout.model_name,
            inputs,
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

    def _readable_id(self, raw: bytes) -> str | None:
        try:
            return self.id(raw)
        except UnicodeDecodeError:
            return None


def _column(each: InputLayout) -> Column:
    return Column(each.name, each.datatype, each.shape, DTYPES[each.datatype] if each.nbytes >= 0 else None)


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
