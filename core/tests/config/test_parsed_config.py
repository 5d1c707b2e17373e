from __future__ import annotations

import pytest

from tritonpy.config.parsed_config import ParsedConfig
from tritonpy.config.positions import Positions
from tritonpy.config.problem import ConfigProblem, InvalidConfig
from tritonpy_protos.model_config_pb2 import ModelConfig


def test_a_valid_result_returns_its_configuration() -> None:
    config = ModelConfig(name="m")
    assert ParsedConfig(config, Positions(), []).checked("m") is config


def test_a_result_with_problems_raises_them_all() -> None:
    problems = [ConfigProblem("a", "x"), ConfigProblem("b", "y")]
    with pytest.raises(InvalidConfig) as caught:
        ParsedConfig(ModelConfig(), Positions(), problems).checked("m")
    assert caught.value.problems == tuple(problems)
