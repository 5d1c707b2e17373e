"""Selection of the model file and its reader, by platform and file suffix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tritonpy import InvalidArgument, ModelContext, Unavailable
from tritonpy.config import resolve_model_file
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


def is_saved_model(config: ModelConfig) -> bool:
    """Return whether the model is a SavedModel, whose signature can be read without TensorFlow."""
    return config.platform != GRAPH_DEF and not config.default_model_filename.endswith(KERAS)


class ModelSource(Protocol):
    """A model file that can be loaded into a session."""

    @property
    def signature(self) -> Signature:
        """The model's signature; raises `Internal` if the file is invalid."""

    def restore(self, tensorflow: Any, session: Any, device: str) -> None:
        """Load graph and weights into the session, whose graph is the current one.

        `device` is the device for the graph, or "" to use the devices that the model names.
        """

    def close(self) -> None:
        """Free the resources used for reading."""


def create_source(model: ModelContext, settings: ModelSettings) -> ModelSource:
    """Return the reader of the model file.

    Raises `Unavailable` if the file does not exist, `InvalidArgument` for an unsupported kind of
    file.
    """
    path = _path(model)
    if model.config.platform == GRAPH_DEF:
        if path.is_dir():
            raise InvalidArgument(
                f"unable to load model '{model.name}': {path} is a folder, "
                "but a GraphDef is a file. For a SavedModel, set"
                f' platform: "{SAVED_MODEL}"'
            )
        return FrozenGraph(path, model.name)
    if path.suffix == KERAS:
        assert isinstance(model.options, TensorFlowOptions), (  # noqa: S101
            "the core decodes this backend's options: this is a bug"
        )
        chosen = settings.keras_safe_mode
        safe_mode = model.options.keras_safe_mode if chosen is None else chosen
        return KerasFile(path, model.name, settings.graph_tag, settings.signature, safe_mode)
    if path.is_file():
        raise InvalidArgument(
            f"unable to load model '{model.name}': {path} is a file, but a SavedModel is a "
            f'folder. For a GraphDef, set platform: "{GRAPH_DEF}";'
            " Keras 3 files end in .keras; convert older Keras files with Keras"
        )
    return SavedModel(path, model.name, settings.graph_tag, settings.signature)


def _path(model: ModelContext) -> Path:
    default = DEFAULT_FILENAMES[1] if model.config.platform == GRAPH_DEF else DEFAULT_FILENAMES[0]
    path = resolve_model_file(
        model.config.default_model_filename or default, model.path, model.directory
    )
    if not path.exists():
        raise Unavailable(f"unable to find '{path}' for model instance '{model.name}'")
    return path
