"""Label files: one class name per line, in the model's folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy.config.model_files import resolve_model_file
from tritonpy.errors import InvalidArgument

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


def read_labels(config: ModelConfig, directory: Path) -> Mapping[str, Sequence[str]]:
    """Return the labels of each output that has a label file.

    Raises `InvalidArgument` for a file that is missing or outside the model's folder.
    """
    labels: dict[str, Sequence[str]] = {}
    for output in config.output:
        if output.label_filename:
            labels[output.name] = _lines(config.name, directory, output.label_filename)
    return labels


def _lines(model: str, directory: Path, filename: str) -> Sequence[str]:
    path = resolve_model_file(filename, directory, directory)
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidArgument(
            f"label file '{filename}' of model '{model}' cannot be read: {error.strerror} ({path})"
        ) from error
