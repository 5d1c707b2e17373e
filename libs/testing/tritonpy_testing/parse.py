"""Model configurations from text, for tests of plugins."""

from __future__ import annotations

from tritonpy.config import normalize, read_config_text
from tritonpy_protos.model_config_pb2 import ModelConfig


def model_config(text: str) -> ModelConfig:
    """Return the normalized message of the text of a `config.pbtxt`, without validation.

    Raises InvalidConfig with every syntax error.
    """
    return normalize(read_config_text(text).checked("the configuration of the test"))
