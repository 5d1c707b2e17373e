"""Finds the file of a model, and what reads it: by the platform, and by the file's ending."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tritonpy import InvalidArgument, ModelContext, Unavailable, resolve_model_file
from tritonpy_backend_tf.frozen_graph import FrozenGraph
from tritonpy_backend_tf.keras_file import KerasFile
from tritonpy_backend_tf.options import TensorFlowOptions
from tritonpy_backend_tf.saved_model import SavedModel
from tritonpy_backend_tf.settings import ModelSettings
from tritonpy_backend_tf.signature import Signature

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

SAVED_MODEL, GRAPH_DEF = PLATFORMS = ("tensorflow_savedmodel", "tensorflow_graphdef")
KERAS = ".keras"
DEFAULT_FILENAMES = ("model.savedmodel", "model.graphdef", f"model{KERAS}")


def tells_without_tensorflow(config: ModelConfig) -> bool:
    """Say whether the model's file is a SavedModel, whose signature is there to be read."""
    return config.platform != GRAPH_DEF and not config.default_model_filename.endswith(KERAS)


class Source(Protocol):
    """A model in its file."""

    @property
    def signature(self) -> Signature:
        """What the model says of itself. Raises Internal with what is wrong with it."""

    def restore(self, tensorflow: Any, session: Any, device: str) -> None:
        """Build the model in the session's graph, which is the current one, for the device `device` ("": as the model says), and give it its weights."""

    def close(self) -> None:
        """Free what reading took."""


def open_source(model: ModelContext, settings: ModelSettings) -> Source:
    """Return what reads the model's file. Raises Unavailable where there is none, InvalidArgument for a kind of file that is none of TensorFlow's."""
    path = _path(model)
    if model.config.platform == GRAPH_DEF:
        if path.is_dir():
            raise InvalidArgument(
                f"unable to load model '{model.name}': {path} is a folder, a GraphDef is a file. Of a SavedModel the configuration says"
                f' platform: "{SAVED_MODEL}"'
            )
        return FrozenGraph(path, model.name)
    if path.suffix == KERAS:
        assert isinstance(model.options, TensorFlowOptions), "the core decodes this backend's options: this is a bug"  # noqa: S101
        chosen = settings.keras_safe_mode
        safe_mode = model.options.keras_safe_mode if chosen is None else chosen
        return KerasFile(path, model.name, settings.graph_tag, settings.signature, safe_mode)
    if path.is_file():
        raise InvalidArgument(
            f"unable to load model '{model.name}': {path} is a file, a SavedModel is a folder. Of a GraphDef the configuration says platform: \"{GRAPH_DEF}\";"
            " a file of Keras ends with .keras, an older one is opened in Keras and saved so"
        )
    return SavedModel(path, model.name, settings.graph_tag, settings.signature)


def _path(model: ModelContext) -> Path:
    default = DEFAULT_FILENAMES[1] if model.config.platform == GRAPH_DEF else DEFAULT_FILENAMES[0]
    path = resolve_model_file(model.config.default_model_filename or default, model.path, model.directory)
    if not path.exists():
        raise Unavailable(f"unable to find '{path}' for model instance '{model.name}'")
    return path
