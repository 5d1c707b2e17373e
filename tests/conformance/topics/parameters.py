"""Request parameters over both protocols: reserved, passed on, and refused."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Exchange, Grpc, Http, post, topic
from tests.conformance.inference import Inference, given
from tests.conformance.topics.request_fields import IDS
from tritonpy_protos import grpc_service_pb2 as pb

PLAIN = Inference("echo_request", {"IN": given("INT32", 7)}, ("REQUEST",))
BATCHED = Inference("batched_alone", {"IN": given("INT32", 1, 2, shape=(1, 2))}, ("SUM",))
KEYS = (
    "sequence_id",
    "sequence_start",
    "sequence_end",
    "priority",
    "timeout",
    "own",
    "binary_data_output",
    "triton_enable_empty_final_response",
    "triton_other",
    "headers",
    "",
    "ключ",
)
JSON_VALUES: dict[str, Any] = {
    "zero": 0,
    "one": 1,
    "negative": -1,
    "63 bits": 2**63 - 1,
    "64 bits": 2**64 - 1,
    "65 bits": 2**64,
    "fraction": 1.5,
    "whole fraction": 2.0,
    "true": True,
    "false": False,
    "text": "text",
    "number as text": "12",
    "empty text": "",
    "null": None,
    "list": [1],
    "object": {"a": 1},
}
CHOICES: dict[str, pb.InferParameter] = {
    "true": pb.InferParameter(bool_param=True),
    "zero": pb.InferParameter(int64_param=0),
    "number": pb.InferParameter(int64_param=3),
    "negative": pb.InferParameter(int64_param=-3),
    "largest": pb.InferParameter(int64_param=2**63 - 1),
    "text": pb.InferParameter(string_param="text"),
    "empty text": pb.InferParameter(string_param=""),
    "double": pb.InferParameter(double_param=1.5),
    "unsigned": pb.InferParameter(uint64_param=3),
    "largest unsigned": pb.InferParameter(uint64_param=2**64 - 1),
    "no choice": pb.InferParameter(),
}


def over_http(inference: Inference, parameters: Any, request_id: str = "") -> Http:
    inputs = [
        {"name": name, "datatype": one.datatype, "shape": list(one.shape), "data": list(one.values)}
        for name, one in inference.inputs.items()
    ]
    outputs = [{"name": name} for name in inference.outputs]
    return post(
        inference.path,
        {
            **({"id": request_id} if request_id else {}),
            "parameters": parameters,
            "inputs": inputs,
            "outputs": outputs,
        },
    )


def over_grpc(inference: Inference, **parameters: pb.InferParameter) -> Grpc:
    message = inference.message()
    for name, value in parameters.items():
        message.parameters[name].CopyFrom(value)
    return Grpc("ModelInfer", message)


def on_an_input(choice: pb.InferParameter, key: str) -> Grpc:
    message = PLAIN.message()
    message.inputs[0].parameters[key].CopyFrom(choice)
    return Grpc("ModelInfer", message)


TOGETHER = {
    "sequence_id": 3,
    "sequence_start": True,
    "sequence_end": True,
    "priority": 1,
    "timeout": 5,
    "own": "text",
    "other": 1.5,
}

TOPIC = topic(
    "parameters",
    "echo_request batched_alone",
    [
        *(Exchange(f"{key or 'no key'} {name}/http", (over_http(PLAIN, {key: value}),)) for key in KEYS for name, value in JSON_VALUES.items()),
        *(Exchange(f"{key or 'no key'} {name}/grpc", (over_grpc(PLAIN, **{key: value}),)) for key in KEYS for name, value in CHOICES.items()),
        *(Exchange(f"input parameter {name}/grpc", (on_an_input(value, "own"),)) for name, value in CHOICES.items()),
        Exchange("binary_data_size on an input/grpc", (on_an_input(CHOICES["number"], "binary_data_size"),)),
        Exchange("all together", (over_http(PLAIN, TOGETHER),)),
        *(Exchange(f"sequence {key} for a model without sequences", (over_http(BATCHED, {"sequence_id": 7, key: True}),)) for key in ("sequence_start", "sequence_end")),
        *(Exchange(f"priority {value} for a model without levels", (over_http(BATCHED, {"priority": value}),)) for value in (0, 1, 7)),
        *(Exchange(f"timeout {value} for a model that does not allow it", (over_http(BATCHED, {"timeout": value}),)) for value in (1, 10**9)),
        *(Exchange(f"id {name}", (over_http(PLAIN, {}, value), PLAIN.named(id=value, outputs=()).grpc())) for name, value in IDS.items()),
        *(Exchange(f"id {name} in an error", (over_http(PLAIN.named(inputs={}), {}, value), PLAIN.named(id=value, inputs={}).grpc())) for name, value in IDS.items()),
        Exchange("id with a % in an error", (over_http(PLAIN.named(inputs={}), {}, "%s%d%n"), PLAIN.named(id="%s%d%n", inputs={}).grpc())),
    ],
)  # fmt: skip
