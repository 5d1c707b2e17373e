"""A SavedModel as a session runs it."""

from __future__ import annotations

import logging
from functools import cached_property
from pathlib import Path
from typing import Any

from tritonpy_backend_tf.saved_model_file import DEFAULT_SIGNATURE, Chosen, choose
from tritonpy_backend_tf.signature import Signature

log = logging.getLogger("tritonpy.backend")


class SavedModel:
    """The folder of a SavedModel: one of its signatures, of the graph with the tags `tag`; "" means the default of each."""

    def __init__(self, folder: Path, model: str, tag: str, signature: str) -> None:
        self.folder = folder
        self._model = model
        self._wanted = tag, signature

    @cached_property
    def _chosen(self) -> Chosen:
        chosen = choose(self.folder, self._model, *self._wanted)
        if chosen.name != (self._wanted[1] or DEFAULT_SIGNATURE):
            log.warning(
                "model '%s' has no signature '%s': using signature '%s'", self._model, DEFAULT_SIGNATURE, chosen.name
            )
        return chosen

    @property
    def signature(self) -> Signature:
        """The signature that is served; read without TensorFlow. Raises Internal."""
        return self._chosen.signature

    def restore(self, tensorflow: Any, session: Any, device: str) -> None:
        """Load graph and weights."""
        with session.graph.device(device or None):
            tensorflow.compat.v1.saved_model.load(session, list(self._chosen.tags), str(self.folder))

    def close(self) -> None:
        """Nothing is open."""
