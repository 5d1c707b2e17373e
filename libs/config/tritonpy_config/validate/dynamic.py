"""Rules for the dynamic batcher."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tritonpy_config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelDynamicBatching, ModelQueuePolicy


def dynamic_batching_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the problems of `dynamic_batching`."""
    if not config.HasField("dynamic_batching"):
        return
    dynamic, name = config.dynamic_batching, config.name
    yield from preferred_size_problems(
        dynamic.preferred_batch_size,
        config,
        path="dynamic_batching.preferred_batch_size",
        kind="dynamic batching preferred size",
    )
    yield from _priority_problems(dynamic, name)
    if dynamic.preserve_ordering:
        yield from _ordering_problems(dynamic, name)


def preferred_size_problems(
    sizes: Iterable[int], config: ModelConfig, *, path: str, kind: str
) -> Iterator[ConfigProblem]:
    """Yield the preferred batch sizes that can never be reached."""
    for index, size in enumerate(sizes):
        if size <= 0:
            yield ConfigProblem(f"{path}[{index}]", f"{kind} must be positive for {config.name}")
        elif size > config.max_batch_size:
            yield ConfigProblem(
                f"{path}[{index}]", f"{kind} must be <= max batch size for {config.name}"
            )


def _priority_problems(dynamic: ModelDynamicBatching, name: str) -> Iterator[ConfigProblem]:
    levels = dynamic.priority_levels
    if levels == 0:
        return
    if not 1 <= dynamic.default_priority_level <= levels:
        yield ConfigProblem(
            "dynamic_batching.default_priority_level",
            f"default priority level must be in range [1, {levels}] for {name}",
        )
    for level in sorted(dynamic.priority_queue_policy):
        if not 1 <= level <= levels:
            yield ConfigProblem(
                f"dynamic_batching.priority_queue_policy[{level}]",
                f"priority queue policy must have priority level in range [1, {levels}] for {name}",
            )


def _ordering_problems(dynamic: ModelDynamicBatching, name: str) -> Iterator[ConfigProblem]:
    if dynamic.priority_levels > 1:
        yield ConfigProblem(
            "dynamic_batching.priority_levels",
            f"Only one priority level is allowed when 'preserve_ordering' is true for {name}",
        )
    policies = {"dynamic_batching.default_queue_policy": dynamic.default_queue_policy}
    for level in sorted(dynamic.priority_queue_policy):
        policies[f"dynamic_batching.priority_queue_policy[{level}]"] = (
            dynamic.priority_queue_policy[level]
        )
    for path, policy in policies.items():
        if policy.default_timeout_microseconds and policy.timeout_action == ModelQueuePolicy.DELAY:
            yield ConfigProblem(
                f"{path}.timeout_action",
                (
                    "Queue policy can not have DELAY as timeout action when 'preserve_ordering' "
                    f"is true for {name}"
                ),
            )
