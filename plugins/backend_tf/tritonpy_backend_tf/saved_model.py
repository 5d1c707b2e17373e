"""SavedModels loaded into sessions."""

from __future__ import annotations

import logging
from functools import cached_property
from pathlib import Path
from typing import Any

from tritonpy_backend_tf.saved_model_file import (
    DEFAULT_SIGNATURE,
    ServedSignature,
    read_served_signature,
)
from tritonpy_backend_tf.signature import Signature

log = logging.getLogger("tritonpy.backend")


class SavedModel:
    """A SavedModel folder with a selected graph and signature.

    `tag` selects the graph, `signature` the signature; "" selects the default.
    """

    def __init__(self, folder: Path, model: str, tag: str, signature: str) -> None:
        self.folder = folder
        self._model = model
        self._selection = tag, signature

    @cached_property
    def _served(self) -> ServedSignature:
        chosen = read_served_signature(self.folder, self._model, *self._selection)
        if chosen.name != (self._selection[1] or DEFAULT_SIGNATURE):
            log.warning(
                "model '%s' has no signature '%s': using signature '%s'",
                self._model,
                DEFAULT_SIGNATURE,
                chosen.name,
            )
        return chosen

    @property
    def signature(self) -> Signature:
        """The served signature, read without TensorFlow; raises `Internal`."""
        return self._served.signature

    def restore(self, tensorflow: Any, session: Any, device: str) -> None:
        """Load graph and weights into the session."""
        with session.graph.device(device or None):
            tensorflow.compat.v1.saved_model.load(
                session, list(self._served.tags), str(self.folder)
            )

    def close(self) -> None:
        """Do nothing: no resource is open."""
