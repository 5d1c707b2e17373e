"""Refuses input shapes that a model cannot compute, before they reach the device."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tritonpy_backend_openvino.failures import told_as
from tritonpy_backend_openvino.signature import Signature

_MOST = 4096  # combinations that are remembered
Shape = tuple[int, ...]


class ShapeCheck:
    """Asks a model's own operators, once for each new combination of shapes; any thread may ask.

    OpenVINO's CPU plugin takes whatever the open dimensions of an input allow. Where an operator in the middle then fails, it stays broken for the
    shape that it computed before: a good request after a bad one fails too.
    """

    def __init__(self, openvino: Any, model: Any, signature: Signature, batched: bool) -> None:
        """Keep `model`, an `openvino.Model` that nobody else changes, where its inputs leave more open than the batch: then the check is `needed`."""
        first = 1 if batched else 0
        infos = signature.inputs.values()
        self._openvino = openvino
        self._first = first
        self.needed = any(info.dims is None or -1 in info.dims[first:] for info in infos)
        self._model: Any = model if self.needed else None
        self._known: set[tuple[Shape, ...]] = set()
        self._lock = threading.Lock()

    def check(self, shapes: Mapping[int, Shape]) -> None:
        """Raise Internal, with the operator's own text, where the inputs cannot have `shapes`, by their numbers."""
        key = tuple([shapes[index][self._first :] for index in sorted(shapes)])
        if key in self._known:
            return
        with self._lock, told_as("setting tensor data"):
            self._model.reshape({index: self._openvino.PartialShape(list(shape)) for index, shape in shapes.items()})
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known.add(key)
