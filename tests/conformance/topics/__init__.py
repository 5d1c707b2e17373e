"""Every topic that the two servers are asked about."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, Topic
from tests.conformance.topics import (
    bls,
    control,
    crashes,
    decoupled,
    execute_errors,
    load_errors,
    metrics,
    requests,
    surroundings,
    tensors,
)

TOPICS = tuple(
    module.TOPIC
    for module in (
        tensors,
        requests,
        execute_errors,
        decoupled,
        bls,
        metrics,
        surroundings,
        control,
        crashes,
        load_errors,
    )
)


def full_name(topic: Topic, exchange: Exchange) -> str:
    """Return the name that reports and `differences.toml` use."""
    return f"{topic.name}/{exchange.name}"
