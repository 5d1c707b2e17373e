"""Every topic that the two servers are asked about."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, Topic
from tests.conformance.topics import (
    batching,
    binary_tensors,
    bls,
    cancellation,
    classification,
    configurations,
    control,
    crashes,
    decoupled,
    descriptions,
    endpoints,
    execute_errors,
    generate,
    grpc_streams,
    grpc_tensors,
    header_forwarding,
    json_tensors,
    latency_distributions,
    load_errors,
    log_settings,
    metrics,
    metrics_families,
    no_latency_counters,
    parameters,
    repository_api,
    request_fields,
    requests,
    restricted_grpc,
    restricted_http,
    shared_memory,
    statistics_json,
    surroundings,
    tensor_rules,
    tensors,
    trace_settings,
    transport,
)

TOPICS = tuple(
    module.TOPIC
    for module in (
        tensors,
        endpoints,
        descriptions,
        repository_api,
        configurations,
        statistics_json,
        request_fields,
        parameters,
        json_tensors,
        binary_tensors,
        grpc_tensors,
        tensor_rules,
        classification,
        grpc_streams,
        batching,
        requests,
        execute_errors,
        decoupled,
        cancellation,
        generate,
        shared_memory,
        bls,
        metrics,
        metrics_families,
        latency_distributions,
        no_latency_counters,
        surroundings,
        control,
        crashes,
        load_errors,
        restricted_http,
        restricted_grpc,
        header_forwarding,
        log_settings,
        trace_settings,
        transport,
    )
)


def full_name(topic: Topic, exchange: Exchange) -> str:
    """Return the name that reports and `differences.toml` use."""
    return f"{topic.name}/{exchange.name}"
