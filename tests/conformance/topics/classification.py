"""Classification: the best values of an output with their indices and labels."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Exchange, Grpc, post, topic
from tests.conformance.inference import Given, Inference, given
from tests.conformance.topics.tensors import VALUES
from tritonpy_protos import grpc_service_pb2 as pb

SCORES = given("FP32", 0.25, 3, -1, 3, shape=(1, 4))
BATCH = given("FP32", 1, 2, 3, 4, 4, 3, 2, 1, shape=(2, 4))
COUNTS: dict[str, Any] = {
    "one": 1,
    "two": 2,
    "all": 4,
    "more than there are": 9,
    "zero": 0,
    "negative": -1,
    "huge": 2**40,
    "past 63 bits": 2**63,
    "fraction": 1.5,
    "text": "1",
    "true": True,
    "null": None,
    "list": [1],
}
CHOICES: dict[str, pb.InferParameter] = {
    "one": pb.InferParameter(int64_param=1),
    "more than there are": pb.InferParameter(int64_param=9),
    "zero": pb.InferParameter(int64_param=0),
    "negative": pb.InferParameter(int64_param=-1),
    "text": pb.InferParameter(string_param="1"),
    "true": pb.InferParameter(bool_param=True),
    "double": pb.InferParameter(double_param=1),
    "unsigned": pb.InferParameter(uint64_param=1),
    "no choice": pb.InferParameter(),
}
FLOATS = {
    "small": (1e-9, 2e-9),
    "large": (1e38, -1e38),
    "specials": (0.0, float("inf"), float("-inf")),
    "equal": (1, 1, 1),
    "thirds": (1 / 3, 2 / 3),
}


def json_request(inference: Inference, output: str, parameters: dict[str, Any]) -> Any:
    body = {
        "inputs": [
            {
                "name": name,
                "datatype": one.datatype,
                "shape": list(one.shape),
                "data": list(one.values),
            }
            for name, one in inference.inputs.items()
        ],
        "outputs": [{"name": output, "parameters": parameters}],
    }
    return post(inference.path, body)


def grpc_request(inference: Inference, output: str, **parameters: pb.InferParameter) -> Grpc:
    message = inference.message()
    wanted = message.outputs.add(name=output)
    for name, value in parameters.items():
        wanted.parameters[name].CopyFrom(value)
    return Grpc("ModelInfer", message)


def of(datatype: str, tensor: Given) -> Inference:
    return Inference("datatypes", {f"IN_{datatype}": tensor})


LABELLED = Inference("labelled", {"IN": SCORES})
TWO = pb.InferParameter(int64_param=2)
MATRICES = Inference("matrices", {"IN": given("FP32", 1, 2, 3, 4, 8, 7, 6, 5, shape=(2, 2, 2))})

TOPIC = topic(
    "classification",
    "datatypes labelled matrices identity reshaped",
    [
        *(Exchange(f"{kind}", (grpc_request(of(kind, tensor), f"OUT_{kind}", classification=TWO),)) for kind, tensor in VALUES.items() if kind != "STRING"),
        *(Exchange(f"{kind} without elements", (grpc_request(of(kind, Given(tensor.datatype, (), (0,))), f"OUT_{kind}", classification=TWO),)) for kind, tensor in VALUES.items() if kind in ("INT32", "FP32")),
        *(Exchange(f"JSON {kind}", (json_request(of(kind, tensor), f"OUT_{kind}", {"classification": 2}),)) for kind, tensor in VALUES.items() if kind not in ("FP16", "BF16", "STRING")),
        *(Exchange(f"floats {name}", (grpc_request(of("FP32", given("FP32", *values)), "OUT_FP32", classification=TWO), grpc_request(of("FP64", given("FP64", *values)), "OUT_FP64", classification=TWO))) for name, values in FLOATS.items()),
        *(Exchange(f"count {name}/http", (json_request(LABELLED, "OUT", {"classification": count}),)) for name, count in COUNTS.items()),
        *(Exchange(f"count {name}/grpc", (grpc_request(LABELLED, "OUT", classification=choice),)) for name, choice in CHOICES.items()),
        *(Exchange(f"binary {name}", (json_request(LABELLED, "OUT", {"classification": 2, "binary_data": value}),)) for name, value in (("true", True), ("false", False))),
        Exchange("a batch", (grpc_request(LABELLED.named(inputs={"IN": BATCH}), "OUT", classification=TWO), json_request(LABELLED.named(inputs={"IN": BATCH}), "OUT", {"classification": 2, "binary_data": True}))),
        Exchange("matrices", (grpc_request(MATRICES, "OUT", classification=TWO), json_request(MATRICES, "OUT", {"classification": 3}))),
        Exchange("a reshaped output", (grpc_request(Inference("reshaped", {"IN_SCALAR": given("INT32", 1, 2, shape=(2, 1))}), "OUT_SCALAR", classification=TWO),)),
        Exchange("an unknown output", (grpc_request(LABELLED, "NOT_THERE", classification=TWO), json_request(LABELLED, "NOT_THERE", {"classification": 2}))),
        Exchange("another parameter", (grpc_request(LABELLED, "OUT", own=TWO), json_request(LABELLED, "OUT", {"own": 2}))),
    ],
)  # fmt: skip
