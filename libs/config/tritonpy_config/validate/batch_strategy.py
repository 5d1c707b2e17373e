"""Triton's custom batching libraries, which decide which requests share a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tritonpy_config.problem import ConfigProblem, entry
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import InvalidArgument, NotFound, TritonError

PARAMETER = "TRITON_BATCH_STRATEGY_PATH"
LIBRARY = "batchstrategy.so"


def batch_strategy_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield a problem if the parameter names a library that the scheduler cannot use."""
    if PARAMETER in config.parameters and config.HasField("sequence_batching"):
        text = (
            f"{PARAMETER} cannot be specified with sequence batcher, using default batching "
            "strategy"
        )
        yield ConfigProblem(entry("parameters", PARAMETER), text)


def batch_library_problems(config: ModelConfig, folder: Path) -> Iterator[ConfigProblem]:
    """Yield a problem if the parameter names no library in the model's `folder`."""
    try:
        with_batch_library(config, [folder, folder])
    except TritonError as error:
        yield ConfigProblem(entry("parameters", PARAMETER), error.message)


def with_batch_library(config: ModelConfig, folders: Sequence[Path | None]) -> ModelConfig:
    """Return `config` with the absolute path of the model's batching library as its parameter.

    Without one, and for models without dynamic batching, it is `config` itself. `folders` are those
    of the version, of the model and of the backend, in this order: the library is the file that the
    parameter names, or `batchstrategy.so` in one of them. Raises `InvalidArgument` for a parameter
    that leaves the model's folder, and `NotFound` for one that names no file.
    """
    if not config.HasField("dynamic_batching"):
        return config
    if PARAMETER in config.parameters:
        path = _named(config.parameters[PARAMETER].string_value, folders[1] or Path())
    else:
        candidates = [folder / LIBRARY for folder in folders if folder is not None]
        found = [each for each in candidates if each.is_file()]
        if not found:
            return config
        path = found[0]
    completed = ModelConfig()
    completed.CopyFrom(config)
    completed.parameters[PARAMETER].string_value = str(path.resolve())
    return completed


def _named(name: str, folder: Path) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidArgument("Batching library path escapes model repository.")
    if not path.is_file():
        raise NotFound(f"Batching library path not found: {name}")
    return path
