"""Inter-process communication between the server and a worker process.

Frames travel over a Unix socket, large tensors in shared memory. Both ends use this package. The
worker's end runs inside the interpreter of a model. It therefore needs only Python 3.9, the
standard library and numpy, and imports nothing else of tritonpy.

An `Endpoint` is one end without the socket: it converts bytes and descriptors to frames and back.
`channel`, `rpc_client`, `windows` and `parent_watch` serve the worker's end of every kind of
worker.

A frame is a 32-byte header, a list of 64-bit words, optional JSON (errors, parameters, names) and
the bytes of tensors. Consecutive rows with the same names, types and shapes form a group. Their
*signature* is sent once and then referred to by number. A group has one block of bytes per tensor,
so the cost of a batch hardly depends on its size.

Above 32 KiB the bytes of a frame travel in a *shared segment*, which is lent for that frame. The
sender copies once into it and the receiver gets views. The segment returns to the sender when the
last view is gone.
"""

from __future__ import annotations

from .blocks import Block, BlockInputs, BlockRow, Rows, Stack
from .endpoint import Endpoint
from .frame import ALIGNMENT, Frame, ProtocolError
from .kinds import Kind
from .signatures import Column, TensorSignature

VERSION = 3  # version of the protocol; both ends must use the same

__all__ = [
    "ALIGNMENT",
    "VERSION",
    "Block",
    "BlockInputs",
    "BlockRow",
    "Column",
    "Endpoint",
    "Frame",
    "Kind",
    "ProtocolError",
    "Rows",
    "Stack",
    "TensorSignature",
]
