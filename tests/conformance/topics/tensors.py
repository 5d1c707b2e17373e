"""Tensors: every datatype in and out, every kind of array, and the tensor functions."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, topic
from tests.conformance.inference import Given, Inference, both, given, text
from tests.conformance.model_source import keys

VALUES: dict[str, Given] = {
    "BOOL": given("BOOL", True, False, True),
    "UINT8": given("UINT8", 0, 255),
    "UINT16": given("UINT16", 0, 65535),
    "UINT32": given("UINT32", 0, 2**32 - 1),
    "UINT64": given("UINT64", 0, 2**64 - 1),
    "INT8": given("INT8", -128, 127),
    "INT16": given("INT16", -32768, 32767),
    "INT32": given("INT32", -(2**31), 2**31 - 1),
    "INT64": given("INT64", -(2**63), 2**63 - 1),
    "FP16": given("FP16", 0.5, -2.25, 65504.0, float("inf")),
    "FP32": given("FP32", 0.1, -1e30, 0.0, 1e-40),
    "FP64": given("FP64", 0.1, -1e300, 5e-324),
    "BF16": given("BF16", 0x3F80, 0xC000, 0x7F80, 0x0001),
    "STRING": given("BYTES", "one", "", b"\xff\xfe\x00 no text", "zwölf", "𝄞"),
}
EMPTY = {kind: Given(tensor.datatype, (), (0,)) for kind, tensor in VALUES.items()}
AS_JSON = {
    kind: tensor for kind, tensor in VALUES.items() if kind not in {"FP16", "BF16", "STRING"}
}


def datatypes(inputs: dict[str, Given]) -> Inference:
    return Inference("datatypes", {f"IN_{kind}": tensor for kind, tensor in inputs.items()})


TOPIC = topic(
    "tensors",
    "datatypes tensors tensor_api add_sub",
    [
        *(both(f"datatype {kind}", datatypes({kind: tensor})) for kind, tensor in VALUES.items()),
        *(both(f"no elements {kind}", datatypes({kind: tensor})) for kind, tensor in EMPTY.items()),
        *(
            Exchange(f"as JSON {kind}", (datatypes({kind: tensor}).json(),))
            for kind, tensor in AS_JSON.items()
        ),
        Exchange(
            "as JSON STRING", (datatypes({"STRING": given("BYTES", "one", "", "zwölf")}).json(),)
        ),
        Exchange("as JSON FP16", (datatypes({"FP16": given("FP16", 0.5)}).json(),)),
        both("all datatypes at once", datatypes(VALUES)),
        both(
            "many strings",
            datatypes({"STRING": given("BYTES", *(f"string {number}" for number in range(5000)))}),
        ),
        both("no input at all", datatypes({})),
        both("one output of many", datatypes(VALUES).named(outputs=("OUT_INT8", "SEEN"))),
        both(
            "an output without its input",
            datatypes({"INT8": VALUES["INT8"]}).named(outputs=("OUT_FP32",)),
        ),
        *(
            both(f"array {name}", Inference("tensors", {"WHAT": text(name)}))
            for name in keys("tensors", "MAKE")
        ),
        *(
            both(f"dlpack of {name}", Inference("tensors", {"WHAT": text(f"{name}/dlpack")}))
            for name in (
                "int32",
                "no dimension",
                "no elements",
                "strided",
                "transposed",
                "bools",
                "read only",
                "bytes objects",
            )
        ),
        *(
            Exchange(f"call {name}", (Inference("tensor_api", {"WHAT": text(name)}).grpc(),))
            for name in keys("tensor_api", "ACTIONS")
        ),
        both(
            "add and subtract",
            Inference(
                "add_sub",
                {"INPUT0": given("FP32", 1, 2, 3, 4), "INPUT1": given("FP32", 0.5, 0.25, -3, 1e9)},
            ),
        ),
        both(
            "add without the second",
            Inference("add_sub", {"INPUT0": given("FP32", 1, 2, 3, 4)}),
            counted=False,
        ),
    ],
)
