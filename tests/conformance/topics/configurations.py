"""Configurations with one flaw each, and the completion of valid ones."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Exchange, IndexEntry, get, load, topic, unload

IN: dict[str, Any] = {"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]}
OUT: dict[str, Any] = {"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1]}
LEFT = (unload("identity"), IndexEntry("identity"))
BASE: dict[str, Any] = {"backend": "python", "max_batch_size": 4, "input": [IN], "output": [OUT]}
START = {
    "name": "START",
    "control": [{"kind": "CONTROL_SEQUENCE_START", "int32_false_true": [0, 1]}],
}


def batching(**more: Any) -> dict[str, Any]:
    return {**BASE, "dynamic_batching": more}


def sequences(**more: Any) -> dict[str, Any]:
    return {**BASE, "sequence_batching": more}


def tensor(kind: str, **more: Any) -> dict[str, Any]:
    return {**BASE, kind: [{**BASE[kind][0], **more}]}


FLAWS: dict[str, dict[str, Any]] = {
    **{
        f"{kind} {name}": tensor(kind, **more)
        for kind in ("input", "output")
        for name, more in {
            "without a name": {"name": ""},
            "without a datatype": {"data_type": "TYPE_INVALID"},
            "without dims": {"dims": []},
            "with a dim of zero": {"dims": [0]},
            "reshaped to another size": {"dims": [4], "reshape": {"shape": [5]}},
            "reshaped to nothing": {"dims": [4], "reshape": {"shape": []}},
            "that is a shape tensor": {"is_shape_tensor": True},
        }.items()
    },
    "an input in NHWC with one dim": tensor("input", format="FORMAT_NHWC"),
    "an input in NCHW with three dims": tensor("input", format="FORMAT_NCHW", dims=[1, 2, 3]),
    "an input twice": {**BASE, "input": [IN, IN]},
    "an output twice": {**BASE, "output": [OUT, OUT]},
    "preferred size of zero": batching(preferred_batch_size=[0]),
    "preferred size too large": batching(preferred_batch_size=[5]),
    "negative preferred size": batching(preferred_batch_size=[-1]),
    "default level of no levels": batching(default_priority_level=1),
    "levels without a default": batching(priority_levels=2),
    "default level past the levels": batching(priority_levels=2, default_priority_level=3),
    "policy of an unknown level": batching(priority_levels=2, default_priority_level=1, priority_queue_policy={3: {"max_queue_size": 1}}),
    "ordered levels": batching(priority_levels=2, default_priority_level=1, preserve_ordering=True),
    "ordered and delayed": batching(preserve_ordering=True, default_queue_policy={"timeout_action": "DELAY"}),
    "batching without a batch size": {**batching(), "max_batch_size": 0},
    "two kinds of batching": {**batching(), "sequence_batching": {}},
    "a control without a name": sequences(control_input=[{**START, "name": ""}]),
    "a control twice": sequences(control_input=[START, {**START, "name": "OTHER"}]),
    "a control without values": sequences(control_input=[{"name": "START", "control": [{"kind": "CONTROL_SEQUENCE_START"}]}]),
    "a control with one value": sequences(control_input=[{"name": "START", "control": [{"kind": "CONTROL_SEQUENCE_START", "int32_false_true": [1]}]}]),
    "a control with values of two types": sequences(control_input=[{"name": "START", "control": [{"kind": "CONTROL_SEQUENCE_START", "int32_false_true": [0, 1], "fp32_false_true": [0, 1]}]}]),
    "a correlation id of FP32": sequences(control_input=[{"name": "ID", "control": [{"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_FP32"}]}]),
    "CPU instances with GPUs": {**BASE, "instance_group": [{"kind": "KIND_CPU", "gpus": [0]}]},
    "model instances with GPUs": {**BASE, "instance_group": [{"kind": "KIND_MODEL", "gpus": [0]}]},
    "GPU instances": {**BASE, "instance_group": [{"kind": "KIND_GPU"}]},
    "GPU instances of a GPU": {**BASE, "instance_group": [{"kind": "KIND_GPU", "gpus": [0]}]},
    "a profile": {**BASE, "instance_group": [{"kind": "KIND_CPU", "profile": ["0"]}]},
    "a platform of another backend": {**BASE, "platform": "onnxruntime_onnx"},
    "an unknown platform": {**BASE, "platform": "nothing"},
    "a batch input without a source": {**BASE, "batch_input": [{"kind": "BATCH_ELEMENT_COUNT", "target_name": ["B"], "data_type": "TYPE_INT32"}]},
    "a cache for a decoupled model": {**BASE, "response_cache": {"enable": True}, "model_transaction_policy": {"decoupled": True}},
    "a label file that is not there": tensor("output", label_filename="not_there.txt"),
}  # fmt: skip
WHOLE: dict[str, dict[str, Any]] = {
    "nothing more": BASE,
    "dynamic batching": batching(),
    "a delay": batching(max_queue_delay_microseconds=100),
    "queue policies": batching(default_queue_policy={"timeout_action": "DELAY", "default_timeout_microseconds": 5, "allow_timeout_override": True, "max_queue_size": 3}),
    "levels": batching(priority_levels=2, default_priority_level=1, priority_queue_policy={2: {"max_queue_size": 1}}),
    "three instances in two groups": {**BASE, "instance_group": [{"count": 2, "kind": "KIND_CPU"}, {"name": "own", "kind": "KIND_MODEL"}]},
    "instances of any kind": {**BASE, "instance_group": [{"count": 1}]},
    "no instances": {**BASE, "instance_group": [{"count": 0, "kind": "KIND_CPU"}]},
    "a rate limiter": {**BASE, "instance_group": [{"kind": "KIND_CPU", "rate_limiter": {"resources": [{"name": "R", "count": 2, "global": True}], "priority": 2}}]},
    "parameters": {**BASE, "parameters": {"a": {"string_value": "b"}, "": {"string_value": ""}}},
    "metric tags": {**BASE, "metric_tags": {"tag": "value"}},
    "versions of a number": {**BASE, "version_policy": {"latest": {"num_versions": 3}}},
    "all versions": {**BASE, "version_policy": {"all": {}}},
    "optimization": {**BASE, "optimization": {"priority": "PRIORITY_MAX", "input_pinned_memory": {"enable": False}}},
    "reshaped": tensor("input", dims=[2, 2], reshape={"shape": [4]}),
    "optional": tensor("input", optional=True),
    "ragged": tensor("input", allow_ragged_batch=True),
    "no answers in order": {**BASE, "model_transaction_policy": {"decoupled": False}},
    "decoupled": {**BASE, "model_transaction_policy": {"decoupled": True}},
    "another file name": {**BASE, "default_model_filename": "model.py"},
    "64 bit numbers": batching(max_queue_delay_microseconds=2**62),
}  # fmt: skip

OVERRIDES: dict[str, dict[str, Any]] = {
    "version policy": {**BASE, "version_policy": {"specific": {"versions": [3]}}},
    "another batch size": {**BASE, "max_batch_size": 2},
    "another name": {**BASE, "name": "another"},
    "its own name": {**BASE, "name": "identity"},
    "an unknown field": {**BASE, "no_such_field": 1},
    "a field of another type": {**BASE, "max_batch_size": "many"},
    "a number as text": {**BASE, "max_batch_size": "2"},
    "a name of its own JSON form": {**BASE, "maxBatchSize": 2},
    "no backend": {"input": [IN], "output": [OUT]},
    "an unknown backend": {**BASE, "backend": "not_there"},
    "no tensors": {"backend": "python"},
    "an unknown datatype": tensor("input", data_type="TYPE_INT33"),
    "nothing": {},
    "a negative batch size": {**BASE, "max_batch_size": -1},
}

TOPIC = topic(
    "configurations",
    "",
    [
        *(
            Exchange(f"override: {name}", (load("identity", config), IndexEntry("identity"), get("/v2/models/identity/config"), *LEFT))
            for name, config in OVERRIDES.items()
        ),
        *(Exchange(f"flaw: {name}", (load("identity", config), IndexEntry("identity"), *LEFT)) for name, config in FLAWS.items()),
        *(
            Exchange(f"whole: {name}", (load("identity", config), get("/v2/models/identity/config"), get("/v2/models/identity"), *LEFT))
            for name, config in WHOLE.items()
        ),
    ],
)  # fmt: skip
