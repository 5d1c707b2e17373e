"""What reading a configuration gives, whatever it was written in."""

from __future__ import annotations

from typing import NamedTuple

from tritonpy.config.positions import Positions
from tritonpy.config.problem import ConfigProblem, refuse_problems
from tritonpy_protos.model_config_pb2 import ModelConfig


class ConfigReading(NamedTuple):
    """A configuration as far as it could be read, and everything that could not."""

    config: ModelConfig
    positions: Positions
    problems: list[ConfigProblem]
    """In the order of the text."""

    def checked(self, source: str) -> ModelConfig:
        """Return the configuration; raises InvalidConfig, which names `source` and all problems, if there are any."""
        refuse_problems(self.problems, source)
        return self.config
