"""Rules for name, platform, backend, version policy and batch size."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy_config.known_backends import ENSEMBLE_PLATFORM, platforms_of
from tritonpy_config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import ModelConfig


def identity_problems(config: ModelConfig, model_name: str) -> Iterator[ConfigProblem]:
    """Yield the problems of the model's name, platform, backend and required fields."""
    name = config.name
    if not name:
        yield ConfigProblem("name", "model configuration must specify 'name'")
    elif name != model_name:
        yield ConfigProblem(
            "name",
            (
                f"unexpected directory name '{model_name}' for model '{name}', "
                "directory name must equal model name"
            ),
        )
    yield from _platform_problems(config)
    if config.max_batch_size < 0:
        yield ConfigProblem(
            "max_batch_size", f"'max_batch_size' must be non-negative value for {name}"
        )
    if not config.HasField("version_policy"):
        yield ConfigProblem("version_policy", f"must specify 'version policy' for {name}")


def _platform_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    name, platform, backend = config.name, config.platform, config.backend
    if not backend:
        if platform != ENSEMBLE_PLATFORM:
            yield ConfigProblem("platform", f"unexpected platform type '{platform}' for {name}")
        return
    if platform == ENSEMBLE_PLATFORM:
        text = (
            f"Ensemble model '{name}' must have platform type '{platform}' and empty backend type"
        )
        yield ConfigProblem("backend", text)
        return
    allowed = platforms_of(backend)
    if allowed and platform not in allowed:
        yield ConfigProblem(
            "platform", f"unexpected 'platform' and 'backend' pair, got:{platform}, {backend}"
        )
