"""A file of Keras 3, which is served as the SavedModel that Keras makes of it."""

from __future__ import annotations

import tempfile
import threading
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any

from tritonpy import Internal
from tritonpy_backend_tf.runtime import tensorflow as import_tensorflow
from tritonpy_backend_tf.saved_model import SavedModel
from tritonpy_backend_tf.signature import Signature

_keras = threading.Lock()  # Keras keeps what it builds in names and lists of the whole process


class KerasFile:
    """A `.keras` file: inputs and outputs have the names that `model.export` gives them.

    With `safe_mode` a file that carries code is refused.
    """

    def __init__(self, path: Path, model: str, tag: str, signature: str, safe_mode: bool) -> None:
        self._path = path
        self._model = model
        self._wanted = tag, signature
        self._safe_mode = safe_mode
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @cached_property
    def _saved(self) -> SavedModel:
        self._folder = tempfile.TemporaryDirectory(prefix="tritonpy-keras-")
        folder = Path(self._folder.name)
        try:
            export(self._path, folder, self._safe_mode)
        except Exception as error:
            self.close()
            raise Internal(f"unable to load model '{self._model}': {self._reason(error)}") from error
        return SavedModel(folder, self._model, *self._wanted)

    @property
    def signature(self) -> Signature:
        """The signature of the export. Raises Internal with Keras's text."""
        return self._saved.signature

    def restore(self, tensorflow: Any, session: Any, device: str) -> None:
        """Load graph and weights."""
        self._saved.restore(tensorflow, session, device)

    def close(self) -> None:
        """Remove the export."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _reason(self, error: Exception) -> str:
        if self._safe_mode and "safe_mode" in str(error):
            return (
                f"{self._path.name} carries code of its own (a Lambda layer), which would run in the server. If you trust the file, give the model the"
                " parameter KERAS_SAFE_MODE with the value false"
            )
        if not zipfile.is_zipfile(self._path):  # Keras says of such a file that it is not there
            return f"{self._path.name} is damaged, was cut off or is no file of Keras 3"
        return f"{self._path.name} cannot be read by Keras: {error}"


def export(path: Path, folder: Path, safe_mode: bool) -> None:
    """Write the Keras model of the file `path` as a SavedModel to `folder`, on the CPU. Raises what Keras raises."""
    tensorflow = import_tensorflow()
    with _keras, tensorflow.device("CPU:0"):
        import keras

        model = keras.saving.load_model(path, compile=False, safe_mode=safe_mode)
        model.export(folder, format="tf_saved_model", verbose=False)
