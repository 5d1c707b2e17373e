"""JSON parts of requests that were read before: clients describe the tensors of a model in the same words again and again."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET

from tritonpy import InferRequest, OutputSpec
from tritonpy_frontend_http.header import InferHeader

LONGEST = 2048  # bytes of JSON that are remembered
MOST = 512  # layouts; clients that say something else each time must not fill the memory
MOST_SEEN = 4096
_ID = b'{"id":"'
_ONLY_BINARY = {"binary_data_output"}


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

    A request's own id, the one thing that changes from request to request, may come first: what is remembered is the rest.
    """

    def __init__(self) -> None:
        self._layouts: dict[bytes, Layout] = {}
        self._seen: set[int] = set()

    def find(self, raw: bytes) -> tuple[Layout | None, str]:
        """Return the layout that the JSON `raw` stands for, None where it is unknown, and the id of the request."""
        layout = self._layouts.get(raw)
        if layout is not None or not raw.startswith(_ID):
            return layout, ""
        identity, key = _split(raw)
        return self._layouts.get(key), identity

    def learn(self, raw: bytes, header: InferHeader, request: InferRequest, binary: bool) -> None:
        """Remember what `raw` was read as, when it comes for the second time and is plain: `request`, its outputs `binary` or not."""
        identity, key = _split(raw)
        # Where there are escapes, one may spell "id" a second time.
        if header.id != identity or b"\\" in key or not _is_plain(header, request):
            return
        sight = hash(key)
        if sight not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen.add(sight)
            return
        if len(self._layouts) >= MOST:
            self._layouts.clear()
        self._layouts[key] = _layout(request, binary)


def _split(raw: bytes) -> tuple[str, bytes]:
    """Return the id that `raw` begins with and the JSON without it; "" and all of it where there is none that needs no decoding."""
    if raw.startswith(_ID):
        end = raw.find(b'"', len(_ID))
        identity = raw[len(_ID) : end]
        if raw[end : end + 2] == b'",' and b"\\" not in identity and identity.isascii() and raw.count(b'"id"') == 1:
            text = identity.decode()
            if text.isprintable():
                # With its brace: what follows the id is no JSON by itself, and must not be known as such.
                return text, b"{" + raw[end + 2 :]
    return "", raw


def _is_plain(header: InferHeader, request: InferRequest) -> bool:
    if request.uses_regions or (header.parameters and header.parameters.keys() != _ONLY_BINARY):
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
