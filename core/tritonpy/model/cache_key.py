"""What makes two requests the same question, as one digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tritonpy.types import InferRequest, Tensor

_encode = msgspec.msgpack.Encoder().encode


def cacheable_size(request: InferRequest) -> int | None:
    """Return how many bytes of input there are to digest; None where the answer depends on more, or the data is not in host memory."""
    if request.sequence is not None:
        return None
    size = 0
    for tensor in request.inputs.values():
        if type(tensor.data) is not np.ndarray:
            return None
        size += tensor.data.nbytes
    return size


class KeyMaker:
    """Makes the keys of one model version, which `identity` tells from all others; `outputs` are the names of all that it has.

    SHA-256, because an answer must never be another client's, not even by intent; of those that Python brings it is the fastest where the processor knows
    it. Lengths go before contents, so that no two questions are spelled alike. Who names every output asks the same as who names none, since the
    steps of ensembles and many clients name them.
    """

    def __init__(self, identity: bytes, outputs: Sequence[str] = ()) -> None:
        self._start = hashlib.sha256(identity)
        self._everything = [(name, 0) for name in outputs]

    def key(self, request: InferRequest, inputs: Mapping[str, Tensor]) -> bytes:
        """Return the key of `request` with `inputs`; takes time in proportion to their size, and lets other threads run meanwhile.

        Raises what the encoder does (OverflowError, UnicodeEncodeError) for parameters that no protocol carries.
        """
        tensors = [inputs[name] for name in sorted(inputs)]
        asked = None
        if request.outputs is not None:
            asked = [(spec.name, spec.classification) for spec in request.outputs.values()]
            if asked == self._everything:
                asked = None
        question = (
            [(tensor.name, tensor.datatype, tensor.shape, tensor.data.nbytes) for tensor in tensors],
            asked,
            sorted(request.parameters.items()),
        )
        digest = self._start.copy()
        digest.update(_encode(question))
        for tensor in tensors:
            digest.update(tensor.data.reshape(-1).view(np.uint8))  # not every datatype is one that buffers know
        return digest.digest()
