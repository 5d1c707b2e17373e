"""What crosses between the server and a worker process: frames over a Unix socket, large tensors in shared memory.

Both ends use this package. The worker's end runs inside the interpreter of a model, so it needs Python 3.9, the standard library and numpy, and
imports nothing else of tritonpy. An `Endpoint` is one end, without the socket: bytes and descriptors in, frames out, and the other way round.
`channel`, `questions`, `windows` and `lifeline` are what every kind of worker has on its end beside it.

A frame is a 32-byte header, a list of 64-bit words, JSON for what is rare (errors, parameters, names), and the bytes of tensors. Tensors are grouped:
neighbours with the same names, types and shapes (their *signature*, sent once and then named by a number) lie in one block per tensor, so that
the cost of a batch hardly depends on its size. Above 32 KiB the bytes of a frame travel in a *parcel*, a piece of shared memory that is lent
for that frame: the sender copies once into it, the receiver gets views, and it goes back when the last of them is gone.
"""

from __future__ import annotations

from .blocks import Block, PlacedInputs, PlacedRow, Rows, Stack
from .endpoint import Endpoint
from .frame import ALIGNMENT, Frame, ProtocolError
from .kinds import Kind
from .signatures import Column, Signature

VERSION = 3  # of everything above; both ends must have the same

__all__ = [
    "ALIGNMENT",
    "VERSION",
    "Block",
    "Column",
    "Endpoint",
    "Frame",
    "Kind",
    "PlacedInputs",
    "PlacedRow",
    "ProtocolError",
    "Rows",
    "Signature",
    "Stack",
]
