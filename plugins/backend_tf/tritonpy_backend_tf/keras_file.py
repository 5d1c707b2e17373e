"""Keras 3 files, served through the SavedModel that Keras exports."""

from __future__ import annotations

import tempfile
import threading
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any

from tritonpy import Internal
from tritonpy_backend_tf.runtime import import_tensorflow
from tritonpy_backend_tf.saved_model import SavedModel
from tritonpy_backend_tf.signature import Signature

_keras_lock = threading.Lock()  # Keras keeps names and lists that are global to the process


class KerasFile:
    """A `.keras` file; its inputs and outputs have the names that `model.export` assigns.

    With `safe_mode`, a file that contains code is rejected.
    """

    def __init__(self, path: Path, model: str, tag: str, signature: str, safe_mode: bool) -> None:
        self._path = path
        self._model = model
        self._selection = tag, signature
        self._safe_mode = safe_mode
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @cached_property
    def _saved_model(self) -> SavedModel:
        self._folder = tempfile.TemporaryDirectory(prefix="tritonpy-keras-")
        folder = Path(self._folder.name)
        try:
            export_saved_model(self._path, folder, self._safe_mode)
        except Exception as error:
            self.close()
            raise Internal(
                f"unable to load model '{self._model}': {self._reason(error)}"
            ) from error
        return SavedModel(folder, self._model, *self._selection)

    @property
    def signature(self) -> Signature:
        """The signature of the export; raises `Internal` with Keras's text."""
        return self._saved_model.signature

    def restore(self, tensorflow: Any, session: Any, device: str) -> None:
        """Load graph and weights into the session."""
        self._saved_model.restore(tensorflow, session, device)

    def close(self) -> None:
        """Remove the exported SavedModel."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _reason(self, error: Exception) -> str:
        if self._safe_mode and "safe_mode" in str(error):
            return (
                f"{self._path.name} contains code (a Lambda layer) that would run in the server. "
                "If you trust the file, set the model's"
                " parameter KERAS_SAFE_MODE to false"
            )
        if not zipfile.is_zipfile(self._path):  # Keras reports such a file as missing
            return f"{self._path.name} is damaged, truncated or not a Keras 3 file"
        return f"{self._path.name} cannot be read by Keras: {error}"


def export_saved_model(path: Path, folder: Path, safe_mode: bool) -> None:
    """Export the Keras model in `path` as a SavedModel in `folder`, on the CPU.

    Raises Keras's exceptions.
    """
    tensorflow = import_tensorflow()
    with _keras_lock, tensorflow.device("CPU:0"):
        import keras

        model = keras.saving.load_model(path, compile=False, safe_mode=safe_mode)
        model.export(folder, format="tf_saved_model", verbose=False)
