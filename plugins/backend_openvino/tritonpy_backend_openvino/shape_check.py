"""Check of input shapes before they reach the device."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tritonpy_backend_openvino.errors import translate_errors
from tritonpy_backend_openvino.signature import Signature

_MAX_CACHED = 4096  # shape combinations
Shape = tuple[int, ...]


class ShapeChecker:
    """Checks each new combination of input shapes with the model's own operators; thread-safe.

    OpenVINO's CPU plugin accepts any shape that the dynamic dimensions of the inputs allow. If an
    operator then fails, it stays broken for the shape that it computed before: a valid request
    after an invalid one fails, too.
    """

    def __init__(self, openvino: Any, model: Any, signature: Signature, batched: bool) -> None:
        """Keep a reference to `model`, an `openvino.Model` that no other code changes.

        The check `is_needed` only if inputs have dynamic dimensions other than the batch.
        """
        first = 1 if batched else 0
        infos = signature.inputs.values()
        self._openvino = openvino
        self._first = first
        self.is_needed = any(info.dims is None or -1 in info.dims[first:] for info in infos)
        self._model: Any = model if self.is_needed else None
        self._known: set[tuple[Shape, ...]] = set()
        self._lock = threading.Lock()

    def check(self, shapes: Mapping[int, Shape]) -> None:
        """Raise `Internal`, with the operator's text, if the inputs cannot have `shapes`.

        `shapes` are by input index.
        """
        key = tuple([shapes[index][self._first :] for index in sorted(shapes)])
        if key in self._known:
            return
        with self._lock, translate_errors("setting tensor data"):
            self._model.reshape(
                {index: self._openvino.PartialShape(list(shape)) for index, shape in shapes.items()}
            )
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            self._known.add(key)
