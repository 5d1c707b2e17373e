"""Cache keys: digests that are equal for equivalent requests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tritonpy_types import InferRequest, Tensor

_encode = msgspec.msgpack.Encoder().encode


def cacheable_size(request: InferRequest) -> int | None:
    """Return the total size of the inputs in bytes, or None if the request cannot be cached.

    Requests of sequences and inputs outside host memory are not cacheable.
    """
    if request.sequence is not None:
        return None
    size = 0
    for tensor in request.inputs.values():
        if type(tensor.data) is not np.ndarray:
            return None
        size += tensor.data.nbytes
    return size


class CacheKeyBuilder:
    """Builds the cache keys of one model version.

    `identity` distinguishes the version from all others. `outputs` are the names of all its
    outputs.

    Keys are SHA-256 digests, because a collision must not be possible even on purpose. SHA-256 is
    also the fastest such hash in Python's standard library on processors with SHA instructions.
    Lengths are hashed before contents, so different requests never hash the same bytes. A request
    that names every output has the same key as one that names none, as ensemble steps and many
    clients name all outputs.
    """

    def __init__(self, identity: bytes, outputs: Sequence[str] = ()) -> None:
        self._start = hashlib.sha256(identity)
        self._all_outputs = [(name, 0) for name in outputs]

    def key(self, request: InferRequest, inputs: Mapping[str, Tensor]) -> bytes:
        """Return the 32-byte key of `request` with `inputs`.

        Takes time in proportion to the size of the inputs, and releases the GIL meanwhile. Raises
        `OverflowError` or `UnicodeEncodeError` for parameters that the encoder rejects.
        """
        tensors = [inputs[name] for name in sorted(inputs)]
        outputs = None
        if request.outputs is not None:
            outputs = [(spec.name, spec.classification) for spec in request.outputs.values()]
            if outputs == self._all_outputs:
                outputs = None
        header = (
            [
                (tensor.name, tensor.datatype, tensor.shape, tensor.data.nbytes)
                for tensor in tensors
            ],
            outputs,
            sorted(request.parameters.items()),
        )
        digest = self._start.copy()
        digest.update(_encode(header))
        for tensor in tensors:
            # The buffer protocol does not know every datatype.
            digest.update(tensor.data.reshape(-1).view(np.uint8))
        return digest.digest()
