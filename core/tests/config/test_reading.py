from __future__ import annotations

import pytest

from tritonpy.config.positions import Positions
from tritonpy.config.problem import ConfigProblem, InvalidConfig
from tritonpy.config.reading import ConfigReading
from tritonpy_protos.model_config_pb2 import ModelConfig


def test_a_reading_without_problems_gives_its_configuration() -> None:
    config = ModelConfig(name="m")
    assert ConfigReading(config, Positions(), []).checked("m") is config


def test_a_reading_with_problems_raises_them_all() -> None:
    problems = [ConfigProblem("a", "x"), ConfigProblem("b", "y")]
    with pytest.raises(InvalidConfig) as caught:
        ConfigReading(ModelConfig(), Positions(), problems).checked("m")
    assert caught.value.problems == tuple(problems)
