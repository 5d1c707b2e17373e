"""Failing loads from a client's view."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.conformance.exchange import Exchange, Grpc, Http, IndexEntry, get, load, topic, unload
from tests.conformance.inference import Inference, given
from tritonpy_protos import grpc_service_pb2 as pb

BROKEN = (
    "broken_syntax", "broken_indentation", "broken_import", "broken_import_name", "broken_at_import", "broken_exit_at_import",
    "no_class", "class_is_no_class", "constructor_raises", "constructor_wants_more", "initialize_takes_nothing",
    "auto_complete_not_static", "no_tensors", "empty_file", "file_is_no_python",
)  # fmt: skip
STARTING = (
    "raises", "raises_from_cause", "raises_model_exception", "raises_error_object", "raises_without_text", "missing_key", "missing_file",
    "returns_a_value", "leaves",
)  # fmt: skip
COMPLETING = (
    "plain", "batched", "optional", "decoupled", "twice_the_same", "nothing", "only_input", "strange_type", "no_dims", "bad_dims", "other_dims",
    "other_type", "smaller_batch", "negative_batch", "unknown_input_key", "unknown_output_key", "input_without_name", "input_without_type",
    "input_without_dims", "output_without_name", "output_without_type", "output_without_dims", "unknown_policy", "other_policy", "dictionary",
    "through_the_dictionary", "returns_none", "returns_dictionary", "raises", "leaves",
)  # fmt: skip
TENSOR = {"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}
TENSORS = {"input": [TENSOR], "output": [{**TENSOR, "name": "OUT"}]}


def configured(what: str, more: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a model with the failure `what`."""
    return {"backend": "python", **more, "parameters": {"what": {"string_value": what}}}


def life(model: str, loading: Http) -> tuple[Any, ...]:
    """Return the steps for a model whose load may fail."""
    return (loading, IndexEntry(model), get(f"/v2/models/{model}/config"), unload(model))


def completing(name: str, what: str, more: dict[str, Any]) -> Exchange:
    return Exchange(
        f"auto-complete {name}", life("completing", load("completing", configured(what, more)))
    )


def over_grpc(model: str) -> Exchange:
    """Return the exchange of a load that fails, over gRPC."""
    return Exchange(
        f"{model} by gRPC",
        (
            Grpc("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name=model)),
            Grpc("ModelConfig", pb.ModelConfigRequest(name=model)),
            Grpc("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name=model)),
        ),
    )


def silent(model: str, loading: Http) -> Exchange:
    """Return the exchange of a model whose process ends without an error message.

    No further request names the model.
    """
    return Exchange(
        f"{model} ends silently", (dataclasses.replace(loading, timeout_s=8), IndexEntry(model))
    )


ONE = Inference("no_execute", {"IN": given("INT32", 1)}).json()
TOPIC = topic(
    "load errors",
    "",
    [
        *(
            silent(f"starting_{what}", load(f"starting_{what}"))
            for what in ("leaves_at_once", "is_killed", "aborts")
        ),
        *(
            silent(model, load(model))
            for model in ("broken_exits_at_once", "no_file", "completing_leaves", "completing_asks")
        ),
        *(Exchange(name, life(name, load(name))) for name in BROKEN),
        *(
            Exchange(
                f"initialize {what}", life("starting", load("starting", configured(what, TENSORS)))
            )
            for what in STARTING
        ),
        *(completing(what, what, {}) for what in COMPLETING),
        completing("smaller batch than configured", "batched", {"max_batch_size": 8}),
        completing("larger batch than configured", "batched", {"max_batch_size": 2}),
        completing("with sequence batching", "batched", {"sequence_batching": {}}),
        completing(
            "with dynamic batching",
            "batched",
            {"max_batch_size": 2, "dynamic_batching": {"preferred_batch_size": [2]}},
        ),
        completing(
            "decoupled but configured not to be",
            "decoupled",
            {"model_transaction_policy": {"decoupled": False}},
        ),
        completing(
            "another type is configured",
            "plain",
            {"input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [2]}]},
        ),
        completing(
            "other dims are configured",
            "plain",
            {"input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [5]}]},
        ),
        completing("dims are configured", "plain", {"input": [{"name": "IN", "dims": [2]}]}),
        completing(
            "another output is configured",
            "plain",
            {"output": [{"name": "OUT2", "data_type": "TYPE_FP32", "dims": [2]}]},
        ),
        *(
            over_grpc(name)
            for name in ("no_class", "broken_at_import", "bls_at_start", "not_there")
        ),
        Exchange("no execute", (load("no_execute"), ONE, ONE, unload("no_execute"))),
        Exchange(
            "finalize raises",
            (
                load("starting", configured("raises_at_the_end", TENSORS)),
                unload("starting"),
                load("starting", configured("fine", TENSORS)),
                Inference("starting", {"IN": given("INT32", 1)}).json(),
                unload("starting"),
            ),
        ),
    ],
)
