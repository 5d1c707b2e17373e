"""Rules for the response cache."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy.config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import ModelConfig


def cache_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the settings that are not allowed with an enabled response cache."""
    if not config.response_cache.enable:
        return
    refused = f"Response Cache does not currently support model {config.name} with"
    advice = "Please disable the response cache."
    if config.HasField("sequence_batching"):
        yield ConfigProblem("response_cache.enable", f"{refused} sequence batching scheduler. {advice}")
    if config.model_transaction_policy.decoupled:
        yield ConfigProblem("response_cache.enable", f"{refused} 'decoupled' transaction policy. {advice}")
