"""Rules for Triton's custom batching libraries, which this server cannot load.

Without the library the server would form other batches, so it rejects the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tritonpy_config.problem import ConfigProblem, entry
from tritonpy_protos.model_config_pb2 import ModelConfig

PARAMETER = "TRITON_BATCH_STRATEGY_PATH"
LIBRARY = "batchstrategy.so"
_INSTEAD = (
    "a shared library, which this server does not load: write a batch policy instead, "
    "a class that a "
    "plugin registers under tritonpy_batch_policies; name it in the parameter 'batch_policy'"
)


def batch_strategy_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield a problem if the parameter names a library."""
    if PARAMETER not in config.parameters:
        return
    if config.HasField("sequence_batching"):
        text = (
            f"{PARAMETER} cannot be specified with sequence batcher, using default batching "
            "strategy"
        )
    else:
        text = f"{PARAMETER} names {_INSTEAD}"
    yield ConfigProblem(entry("parameters", PARAMETER), text)


def batch_library_problems(config: ModelConfig, files: Iterable[str]) -> Iterator[ConfigProblem]:
    """Yield the libraries among `files` of the model's folder that Triton loads by default."""
    if config.HasField("sequence_batching") or config.HasField("ensemble_scheduling"):
        return
    for file in sorted(files):
        if PurePosixPath(file).name == LIBRARY and file.count("/") < 2:
            yield ConfigProblem("", f"{file} is {_INSTEAD}")
