"""Model configurations as plugin authors write them in tests."""

from __future__ import annotations

from tritonpy.config.model_text import read_config_text
from tritonpy.config.normalize import normalize
from tritonpy_protos.model_config_pb2 import ModelConfig


def model_config(text: str) -> ModelConfig:
    """Return the normalised message of the text of a `config.pbtxt`; it is not validated.

    Raises InvalidConfig with everything that cannot be read.
    """
    return normalize(read_config_text(text).checked("the configuration of the test"))
