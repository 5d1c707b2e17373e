"""Tensors in messages: typed contents, raw contents, mixtures, wrong sizes, shapes and datatypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.exchange import Exchange, Grpc, topic
from tests.conformance.inference import given
from tests.conformance.topics.tensors import VALUES
from tritonpy_protos import grpc_service_pb2 as pb

FIELDS: dict[str, str] = {
    "BOOL": "bool_contents",
    "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
    "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents", "INT64": "int64_contents",
    "FP32": "fp32_contents", "FP64": "fp64_contents", "STRING": "bytes_contents",
}  # fmt: skip
SAMPLES: dict[str, list[Any]] = {
    "bool_contents": [True, False],
    "int_contents": [1, -2],
    "int64_contents": [1, -2],
    "uint_contents": [1, 2],
    "uint64_contents": [1, 2],
    "fp32_contents": [1.5, 2],
    "fp64_contents": [1.5, 2],
    "bytes_contents": [b"one", b"\xff"],
}
WIDE = {
    "UINT8": (256, 2**32 - 1),
    "UINT16": (65536,),
    "INT8": (128, -129),
    "INT16": (40000, -40000),
}
SHAPES: dict[str, list[int]] = {
    "none": [],
    "one": [1],
    "three": [3],
    "two by one": [2, 1],
    "minus one": [-1],
    "minus two": [-2],
    "minus one twice": [-1, -2],
    "zero": [0],
    "huge": [2**62, 4],
    "larger": [2**63 - 1],
    "largest twice": [2**63 - 1, 2**63 - 1],
}
RAW = given("INT32", 1, 2)


def typed(
    datatype: str, shape: Sequence[int], name: str = "", **contents: list[Any]
) -> pb.ModelInferRequest.InferInputTensor:
    kind = "BYTES" if datatype == "STRING" else datatype
    tensor = pb.ModelInferRequest.InferInputTensor(
        name=name or f"IN_{datatype}", datatype=kind, shape=shape
    )
    for field, values in contents.items():
        getattr(tensor.contents, field).extend(values)
    return tensor


def request(
    *tensors: pb.ModelInferRequest.InferInputTensor,
    raw: Sequence[bytes] = (),
    outputs: Sequence[str] = (),
    model: str = "datatypes",
) -> Grpc:
    message = pb.ModelInferRequest(model_name=model, inputs=tensors, raw_input_contents=raw)
    for name in outputs:
        message.outputs.add(name=name)
    return Grpc("ModelInfer", message)


def whole(kind: str) -> list[Any]:
    return [value.encode() if isinstance(value, str) else value for value in VALUES[kind].values]


PAIR = (
    typed("INT32", [1, 2], "IN_A", int_contents=[1, 2]),
    typed("STRING", [1, 1], "IN_B", bytes_contents=[b"x"]),
)
NO_DATA = (typed("INT32", [1, 2], "IN_A"), typed("STRING", [1, 1], "IN_B"))
BYTES = given("BYTES", "x").wire()

TOPIC = topic(
    "gRPC tensors",
    "datatypes pair identity raw_open",
    [
        *(Exchange(f"typed {kind}", (request(typed(kind, [len(whole(kind))], **{field: whole(kind)})),)) for kind, field in FIELDS.items()),
        *(Exchange(f"typed {kind} without elements", (request(typed(kind, [0])), request(typed(kind, [0]), raw=[b""]))) for kind in VALUES),
        *(Exchange(f"typed {kind} {count} of two", (request(typed(kind, [2], **{field: (whole(kind) * 2)[:count]})),)) for kind, field in FIELDS.items() for count in (1, 3)),
        *(Exchange(f"{kind} in {field}", (request(typed(kind, [2], **{field: values})),)) for kind in VALUES for field, values in SAMPLES.items() if field != FIELDS.get(kind)),
        *(Exchange(f"{kind} {value}", (request(typed(kind, [1], **{FIELDS[kind]: [value]})),)) for kind, values in WIDE.items() for value in values),
        *(Exchange(f"raw {kind}", (request(typed(kind, VALUES[kind].shape), raw=[VALUES[kind].wire()]),)) for kind in VALUES),
        *(Exchange(f"raw {kind} {change}", (request(typed(kind, VALUES[kind].shape), raw=[data]),)) for kind in ("UINT8", "FP16", "INT64", "STRING", "BOOL") for change, data in (("a byte short", VALUES[kind].wire()[:-1]), ("a byte long", VALUES[kind].wire() + b"\0"), ("empty", b""))),
        Exchange("two fields", (request(typed("INT32", [2], int_contents=[1, 2], fp32_contents=[1, 2])),)),
        Exchange("its own field empty and another", (request(typed("INT32", [2], int64_contents=[1, 2])),)),
        Exchange("typed and raw for one", (request(typed("INT32", [2], int_contents=[1, 2]), raw=[RAW.wire()]),)),
        Exchange("all typed", (request(*PAIR, model="pair"),)),
        Exchange("all raw", (request(*NO_DATA, raw=[RAW.wire(), BYTES], model="pair"),)),
        Exchange("typed, then raw", (request(PAIR[0], NO_DATA[1], raw=[BYTES], model="pair"),)),
        Exchange("raw, then typed", (request(NO_DATA[0], PAIR[1], raw=[RAW.wire()], model="pair"),)),
        Exchange("typed, then nothing", (request(PAIR[0], NO_DATA[1], model="pair"),)),
        Exchange("raw, then nothing", (request(*NO_DATA, raw=[RAW.wire()], model="pair"),)),
        Exchange("nothing", (request(*NO_DATA, model="pair"),)),
        Exchange("a raw one too many", (request(*NO_DATA, raw=[RAW.wire(), BYTES, b"x"], model="pair"),)),
        Exchange("raw ones without inputs", (request(raw=[b"x"], model="pair"),)),
        Exchange("no inputs", (request(model="pair"),)),
        Exchange("raw ones in the wrong order", (request(*NO_DATA, raw=[BYTES, RAW.wire()], model="pair"),)),
        Exchange("inputs in another order", (request(*NO_DATA[::-1], raw=[BYTES, RAW.wire()], model="pair"),)),
        Exchange("an input twice", (request(*PAIR, PAIR[0], model="pair"),)),
        Exchange("an input twice, raw", (request(*NO_DATA, NO_DATA[0], raw=[RAW.wire(), BYTES, RAW.wire()], model="pair"),)),
        Exchange("an input too many", (request(*PAIR, typed("INT32", [1, 2], "IN_C", int_contents=[1, 2]), model="pair"),)),
        Exchange("an input too few", (request(PAIR[1], model="pair"),)),
        Exchange("an input without a name", (request(pb.ModelInferRequest.InferInputTensor(datatype="INT32", shape=[1]), raw=[RAW.wire()[:4]], model="identity"),)),
        *(Exchange(f"datatype {datatype!r}", (request(pb.ModelInferRequest.InferInputTensor(name="IN", datatype=datatype, shape=[2]), raw=[RAW.wire()], model="identity"),)) for datatype in ("", "int32", "INT33", "TYPE_INT32", "STRING", "BYTES", "FP32", "INVALID", "UINT32")),
        *(Exchange(f"shape {name}/{kind}", (request(typed("INT32", shape, "IN", **contents), raw=raw, model=model),)) for name, shape in SHAPES.items() for model in ("identity",) for kind, contents, raw in (("raw", {}, [RAW.wire()]), ("typed", {"int_contents": [1, 2]}, []))),
        *(Exchange(f"two dimensions {name}", (request(typed("INT32", shape, "IN"), raw=[RAW.wire()], model="raw_open"),)) for name, shape in SHAPES.items()),
        Exchange("outputs twice", (request(*PAIR, outputs=("OUT_A", "OUT_A"), model="pair"),)),
        Exchange("outputs in another order", (request(*PAIR, outputs=("OUT_B", "OUT_A"), model="pair"),)),
        Exchange("an output without a name", (request(*PAIR, outputs=("",), model="pair"),)),
        Exchange("an unknown output", (request(*PAIR, outputs=("OUT_A", "NOT_THERE"), model="pair"),)),
    ],
)  # fmt: skip
