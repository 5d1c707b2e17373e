"""The configuration of one model, from its files (or the load request) to the form in which the backend gets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tritonpy.config.model_json import read_config_json
from tritonpy.config.model_text import read_config_text
from tritonpy.config.positions import Positions
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.reading import ConfigReading
from tritonpy.errors import InvalidArgument
from tritonpy_protos.model_config_pb2 import ModelConfig

CONFIG_FILE = "config.pbtxt"


def read_config(path: Path, config_name: str, override: str | None) -> tuple[ConfigReading, str]:
    """Return what the configuration says and where it came from.

    `override` (JSON) wins over `configs/<config_name>.pbtxt`, which wins over `config.pbtxt`; none of them is an empty configuration.
    Raises InvalidArgument for a file that cannot be read.
    """
    if override is not None:
        return read_config_json(override), "the 'config' parameter of the load request"
    candidates = [CONFIG_FILE] if not config_name else [f"configs/{config_name}.pbtxt", CONFIG_FILE]
    for name in candidates:
        file = path / name
        if file.is_file():
            try:
                return read_config_text(file.read_bytes()), str(file)
            except OSError as error:
                raise InvalidArgument(f"{file} cannot be read: {error.strerror}") from error
    return ConfigReading(ModelConfig(), Positions(), []), str(path / CONFIG_FILE)


def placed(problems: Sequence[ConfigProblem], positions: Positions) -> list[ConfigProblem]:
    """Return the validator's problems with the place in the text that each key has."""
    result = []
    for problem in problems:
        place = positions.nearest(problem.path)
        result.append(replace(problem, line=place.line, column=place.column) if place else problem)
    return result


def string_parameters(config: ModelConfig) -> Mapping[str, str]:
    """Return the `parameters` of a configuration as plain text by key."""
    return {key: config.parameters[key].string_value for key in config.parameters}
