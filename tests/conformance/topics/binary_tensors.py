"""The binary extension of HTTP: lengths, order, mixtures with JSON, empty tensors and raw requests."""

from __future__ import annotations

import json
import struct
from typing import Any

from tests.conformance.exchange import Exchange, Http, topic
from tests.conformance.inference import Given, given

HEADER = "Inference-Header-Content-Length"
A = given("INT32", 1, 2, shape=(1, 2))
B = given("BYTES", "one", "", "three", shape=(1, 3))
PAIR = {"IN_A": A, "IN_B": B}


def described(name: str, tensor: Given, **more: Any) -> dict[str, Any]:
    return {"name": name, "datatype": tensor.datatype, "shape": list(tensor.shape), **more}


def sized(name: str, tensor: Given, size: Any = None) -> dict[str, Any]:
    return described(
        name, tensor, parameters={"binary_data_size": len(tensor.wire()) if size is None else size}
    )


def sent(model: str, head: Any, data: bytes = b"", length: Any = None, **headers: str) -> Http:
    """Return a request with binary data.

    `length` is the JSON length in its header, by default the true length.
    """
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    header_length = str(len(text) if length is None else length)
    return Http(
        f"/v2/models/{model}/infer",
        text + data,
        "POST",
        ((HEADER, header_length), *headers.items()),
    )


def pair(*inputs: dict[str, Any], data: bytes, **options: Any) -> Http:
    return sent("pair", {"inputs": list(inputs)}, data, **options)


def raw(model: str, data: bytes, *headers: tuple[str, str]) -> Http:
    return Http(f"/v2/models/{model}/infer", data, "POST", ((HEADER, "0"), *headers))


WHOLE = [sized(name, tensor) for name, tensor in PAIR.items()]
DATA = A.wire() + B.wire()
JSON = {
    "inputs": [described("IN_A", A, data=[1, 2]), described("IN_B", B, data=["one", "", "three"])]
}
LENGTHS = (
    "-1",
    "",
    "x",
    "1.5",
    "10000000",
    "+10",
    "0x10",
    " 12 ",
    "1",
    "99999999999999999999",
    "18446744073709551617",
)
STRINGS = {
    "a length past the end": struct.pack("<I", 9) + b"one",
    "half a length": b"\x03\x00",
    "something behind": struct.pack("<I", 3) + b"one" + b"x",
    "too many": given("BYTES", "a", "b").wire(),
    "too few": b"",
    "a huge length": b"\xff\xff\xff\xff" + b"one",
}
SIZES: dict[str, Any] = {
    "too small": 4,
    "too large": 12,
    "zero": 0,
    "negative": -8,
    "fraction": 8.0,
    "text": "8",
    "true": True,
    "null": None,
    "huge": 2**62,
    "past 63 bits": 2**63,
    "past 64 bits": 2**64 + 8,
}
NUMBERS = struct.pack("<3i", 1, 2, 3)
OUTPUTS: dict[str, Any] = {
    "both binary": [
        {"name": name, "parameters": {"binary_data": True}} for name in ("OUT_A", "OUT_B")
    ],
    "one of each": [{"name": "OUT_A", "parameters": {"binary_data": True}}, {"name": "OUT_B"}],
    "one of each, the other way round": [
        {"name": "OUT_A"},
        {"name": "OUT_B", "parameters": {"binary_data": True}},
    ],
    "in another order": [
        {"name": name, "parameters": {"binary_data": True}} for name in ("OUT_B", "OUT_A")
    ],
}
EMPTY = given("INT32", shape=(0,))

TOPIC = topic(
    "binary tensors",
    "pair datatypes identity raw_one raw_batched raw_open raw_string raw_string_batched raw_strings",
    [
        Exchange("all binary", (pair(*WHOLE, data=DATA),)),
        Exchange("the other order", (pair(*WHOLE[::-1], data=B.wire() + A.wire()),)),
        Exchange("bytes in the wrong order", (pair(*WHOLE, data=B.wire() + A.wire()),)),
        Exchange("JSON first", (pair(JSON["inputs"][0], WHOLE[1], data=B.wire()),)),
        Exchange("JSON last", (pair(WHOLE[0], JSON["inputs"][1], data=A.wire()),)),
        Exchange("a length without binary data", (sent("pair", JSON),)),
        Exchange("a length and surplus bytes", (sent("pair", JSON, b"xyz"),)),
        Exchange("surplus behind binary data", (pair(*WHOLE, data=DATA + b"x"),)),
        *(Exchange(f"{missing} bytes too few", (pair(*WHOLE, data=DATA[:-missing]),)) for missing in (1, 4, len(B.wire()), len(DATA) - 1)),
        Exchange("no bytes at all", (pair(*WHOLE, data=b""),)),
        *(Exchange(f"length {length!r}", (pair(*WHOLE, data=DATA, length=length),)) for length in LENGTHS),
        *(Exchange(f"length {change:+}", (pair(*WHOLE, data=DATA, length=len(json.dumps({"inputs": WHOLE})) + change),)) for change in (-1, 1, len(DATA), len(DATA) + 1)),
        Exchange("no length", (Http("/v2/models/pair/infer", json.dumps({"inputs": WHOLE}).encode() + DATA, "POST"),)),
        Exchange("data and bytes", (pair({**WHOLE[0], "data": [1, 2]}, WHOLE[1], data=DATA),)),
        *(Exchange(f"size {name}", (pair(sized("IN_A", A, size), WHOLE[1], data=DATA),)) for name, size in SIZES.items()),
        Exchange("sizes that fit together alone", (pair(sized("IN_A", A, 12), sized("IN_B", B, len(B.wire()) - 4), data=DATA),)),
        *(Exchange(f"strings with {name}", (pair(WHOLE[0], sized("IN_B", given("BYTES", "x", shape=(1, 1)), len(data)), data=A.wire() + data),)) for name, data in STRINGS.items()),
        *(Exchange(f"outputs {name}", (sent("pair", {"inputs": WHOLE, "outputs": outputs}, DATA),)) for name, outputs in OUTPUTS.items()),
        Exchange("no elements", (sent("identity", {"inputs": [sized("IN", EMPTY)]}), sent("identity", {"inputs": [described("IN", EMPTY, data=[])]}))),
        *(
            Exchange(f"no elements, answered as bytes, {kind}", (sent("identity", {"parameters": {"binary_data_output": True}, "inputs": [tensor]}),))
            for kind, tensor in {"binary": sized("IN", EMPTY), "JSON": described("IN", EMPTY, data=[])}.items()
        ),
        *(
            Exchange(f"{kind} answered as JSON", (sent("datatypes", {"inputs": [sized(f"IN_{kind}", given(kind, 1, 0))]}, given(kind, 1, 0).wire()),))
            for kind in ("FP16", "BF16", "FP32", "BOOL", "UINT64")
        ),
        Exchange("bytes that are no UTF-8 answered as JSON", (sent("datatypes", {"inputs": [sized("IN_STRING", given("BYTES", b"\xff\x00"))]}, given("BYTES", b"\xff\x00").wire()),)),
        *(
            Exchange(f"{name} answered as JSON", (sent("datatypes", {"inputs": [sized(f"IN_{kind}", given(kind, value))]}, given(kind, value).wire()),))
            for name, kind, value in (("a small float", "FP32", 1e-40), ("a third", "FP32", 1 / 3), ("a third of FP64", "FP64", 1 / 3), ("a large float", "FP32", 3e38), ("a whole float", "FP32", 16777216.0), ("a whole FP64", "FP64", 1e20), ("negative zero", "FP64", -0.0), ("a large FP64", "FP64", 1e300))
        ),
        *(
            Exchange(f"a {datatype} of {size} bytes", (sent("datatypes", {"inputs": [sized(f"IN_{datatype}", Given(datatype, (), (2,)), size)]}, bytes(size)),))
            for datatype, size in (("INT64", 15), ("INT64", 16), ("UINT8", 3), ("BOOL", 2), ("FP16", 5), ("BF16", 4))
        ),
        Exchange("truths that are neither 0 nor 1", (sent("datatypes", {"inputs": [sized("IN_BOOL", Given("BOOL", (), (2,)), 2)]}, b"\x02\xff"),)),
        Exchange("content types", tuple(Http("/v2/models/identity/infer", b'{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}', "POST", (("Content-Type", kind),)) for kind in ("text/plain", "application/octet-stream", "application/json; charset=latin-1", "nothing"))),
        Exchange("raw: fixed shape", (raw("raw_one", NUMBERS),)),
        Exchange("raw: open shape", (raw("identity", NUMBERS), raw("identity", NUMBERS[:4]))),
        Exchange("raw: a batch", (raw("raw_batched", NUMBERS[:8]), raw("raw_batched", NUMBERS + NUMBERS))),
        Exchange("raw: two open dimensions", (raw("raw_open", NUMBERS),)),
        Exchange("raw: two inputs", (raw("pair", NUMBERS),)),
        Exchange("raw: fourteen inputs", (raw("datatypes", NUMBERS),)),
        *(Exchange(f"raw: {size} bytes of fixed shape", (raw("raw_one", bytes(size)),)) for size in (0, 1, 11, 13, 24)),
        *(Exchange(f"raw: {size} bytes of open shape", (raw("identity", bytes(size)),)) for size in (0, 1, 3, 5)),
        *(Exchange(f"raw: {size} bytes of an open batch", (raw("raw_batched", bytes(size)),)) for size in (0, 4, 12, 13)),
        *(Exchange(f"raw: text for {model}", (raw(model, b"some text"),)) for model in ("raw_string", "raw_string_batched", "raw_strings")),
        *(Exchange(f"raw: no text for {model}", (raw(model, b""),)) for model in ("raw_string", "raw_string_batched", "raw_strings")),
        Exchange("raw: bytes as text", (raw("raw_string", b"\x00\xff\xfe"),)),
        Exchange("raw: unknown model", (raw("not_there", NUMBERS),)),
        Exchange("raw: JSON as text", (raw("raw_string", b'{"inputs": []}'),)),
    ],
)  # fmt: skip
