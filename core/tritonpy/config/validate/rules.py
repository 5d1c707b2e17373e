"""All rules in Triton's order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonpy.config.model_files import file_name_problems
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server.device_settings import MIN_COMPUTE_CAPABILITY
from tritonpy.config.validate.batch_strategy import batch_strategy_problems
from tritonpy.config.validate.batch_tensors import batch_tensor_problems
from tritonpy.config.validate.cache import cache_problems
from tritonpy.config.validate.dynamic import dynamic_batching_problems
from tritonpy.config.validate.ensemble import ensemble_problems
from tritonpy.config.validate.groups import group_problems
from tritonpy.config.validate.identity import identity_problems
from tritonpy.config.validate.metrics import metrics_problems
from tritonpy.config.validate.sequence import sequence_problems
from tritonpy.config.validate.state import state_problems
from tritonpy.config.validate.tensors import tensor_problems
from tritonpy.config.validate.warmup import warmup_problems
from tritonpy_protos.model_config_pb2 import ModelConfig


def validate(
    config: ModelConfig,
    model_name: str,
    gpus: Sequence[int] = (),
    *,
    tensors: bool = True,
    min_compute_capability: float = MIN_COMPUTE_CAPABILITY,
) -> list[ConfigProblem]:
    """Return all problems of a normalized configuration; Triton reports the first one.

    `model_name` is the model's name in the repository. `gpus` are the ids of the server's GPUs,
    which have at least the compute capability `min_compute_capability`. `tensors` False skips the
    inputs and outputs, for a configuration that its backend has not completed yet. Rules that need
    other models' configurations (an ensemble's steps) are not checked here.
    """
    return list(_problems(config, model_name, gpus, tensors, min_compute_capability))


def _problems(
    config: ModelConfig, model_name: str, gpus: Sequence[int], tensors: bool, min_compute_capability: float
) -> Iterator[ConfigProblem]:
    yield from identity_problems(config, model_name)
    yield from dynamic_batching_problems(config)
    yield from sequence_problems(config)
    yield from ensemble_problems(config)
    yield from cache_problems(config)
    yield from metrics_problems(config)
    yield from group_problems(config, gpus, min_compute_capability)
    if tensors:
        yield from tensor_problems(config)
        yield from batch_tensor_problems(config)
    yield from state_problems(config)
    yield from warmup_problems(config)
    yield from batch_strategy_problems(config)
    yield from file_name_problems(config)
