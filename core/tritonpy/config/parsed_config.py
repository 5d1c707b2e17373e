"""The result of parsing a configuration, in any format."""

from __future__ import annotations

from typing import NamedTuple

from tritonpy.config.positions import Positions
from tritonpy.config.problem import ConfigProblem, refuse_problems
from tritonpy_protos.model_config_pb2 import ModelConfig


class ParsedConfig(NamedTuple):
    """The valid part of a configuration and all problems of the rest."""

    config: ModelConfig
    positions: Positions
    problems: list[ConfigProblem]
    """In the order of the text."""

    def checked(self, source: str) -> ModelConfig:
        """Return the configuration; raises InvalidConfig with `source` and all problems, if any."""
        refuse_problems(self.problems, source)
        return self.config
