"""The configuration of a model, read from its files or from a load request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tritonpy_config.model_json import read_config_json
from tritonpy_config.model_text import read_config_text
from tritonpy_config.problem import ConfigProblem, ParsedConfig, Positions
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import InvalidArgument

CONFIG_FILE = "config.pbtxt"


def read_config(path: Path, config_name: str, override: str | None) -> tuple[ParsedConfig, str]:
    """Return the configuration and its source.

    `override` (JSON) takes precedence over `configs/<config_name>.pbtxt`, which takes precedence
    over `config.pbtxt`. Without any of them, the configuration is empty. Raises `InvalidArgument`
    for a file that cannot be read.
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
    return ParsedConfig(ModelConfig(), Positions(), []), str(path / CONFIG_FILE)


def with_positions(problems: Sequence[ConfigProblem], positions: Positions) -> list[ConfigProblem]:
    """Return the validator's problems with the line and column of their keys."""
    result = []
    for problem in problems:
        position = positions.nearest(problem.path)
        result.append(
            replace(problem, line=position.line, column=position.column) if position else problem
        )
    return result


def string_parameters(config: ModelConfig) -> Mapping[str, str]:
    """Return the `parameters` of a configuration as strings by key."""
    return {key: config.parameters[key].string_value for key in config.parameters}
