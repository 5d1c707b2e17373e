"""The JSON of an inference: missing, mistyped, duplicate and unknown fields."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.conformance.exchange import Exchange, Http, post, topic

PATH = "/v2/models/pair/infer"
WHOLE: dict[str, Any] = {
    "inputs": [
        {"name": "IN_A", "datatype": "INT32", "shape": [1, 2], "data": [1, 2]},
        {"name": "IN_B", "datatype": "BYTES", "shape": [1, 1], "data": ["x"]},
    ]
}
VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "number": 7,
    "fraction": 0.5,
    "text": "text",
    "empty text": "",
    "list": [],
    "object": {},
    "list of numbers": [1],
    "list of texts": ["a"],
}
BODIES = {
    "nothing": b"",
    "a list": b"[]",
    "null": b"null",
    "a number": b"7",
    "text": b'"text"',
    "an open object": b'{"inputs": [',
    "two objects": b"{}{}",
    "no UTF-8": b'{"id": "\xff"}',
    "spaces round it": b" \r\n\t" + json.dumps(WHOLE).encode() + b" \n",
    "something behind it": json.dumps(WHOLE).encode() + b" x",
    "a mark in front": b"\xef\xbb\xbf" + json.dumps(WHOLE).encode(),
    "comments": b"{/* c */}",
    "single quotes": b"{'inputs': []}",
    "a comma too many": b'{"inputs": [],}',
    "a zero byte": b'{"inputs": []}\x00',
    "nested deeply": b'{"more": ' + b"[" * 90 + b"]" * 90 + b"}",
}
OUTPUT: dict[str, Any] = {"name": "OUT_A"}
OUTPUTS: dict[str, Any] = {
    "none": [],
    "one": [OUTPUT],
    "unknown": [{"name": "NOT_THERE"}],
    "twice": [OUTPUT, OUTPUT],
    "in another order": [{"name": "OUT_B"}, OUTPUT],
    "without a name": [{}],
    "no objects": ["OUT_A"],
    "further fields": [{**OUTPUT, "datatype": "FP32", "shape": [9], "data": [1]}],
}
SWITCHES: dict[str, Any] = {
    "true": True,
    "false": False,
    "number": 1,
    "text": "true",
    "null": None,
    "list": [True],
}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """Return the whole request with another value at one place."""
    request = copy.deepcopy(WHOLE)
    place: Any = request
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return request


def without(*path: Any) -> dict[str, Any]:
    """Return the whole request without the value at one place."""
    request = changed(*path, to=None)
    place: Any = request
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return request


def infer(name: str, body: Any) -> Exchange:
    return Exchange(name, (post(PATH, body),))


PLACES: dict[str, tuple[Any, ...]] = {
    "id": ("id",),
    "parameters": ("parameters",),
    "inputs": ("inputs",),
    "outputs": ("outputs",),
    "input": ("inputs", 0),
    "name": ("inputs", 0, "name"),
    "datatype": ("inputs", 1, "datatype"),
    "shape": ("inputs", 0, "shape"),
    "data": ("inputs", 0, "data"),
    "data of strings": ("inputs", 1, "data"),
    "input parameters": ("inputs", 0, "parameters"),
}
TWICE = {
    "inputs twice": b'{"inputs": [], "inputs": ' + json.dumps(WHOLE["inputs"]).encode() + b"}",
    "id twice": json.dumps({"id": "one", **WHOLE})
    .encode()
    .replace(b'{"id"', b'{"id": "other", "id"', 1),
    "data twice": json.dumps(WHOLE).encode().replace(b'"data"', b'"data": [3, 4], "data"', 1),
}
IDS = {
    "plain": "7",
    "unicode": "größe 模型 😀",
    "quotes": "\"'\\/",
    "control characters": "a\nb\tc\u0001",
    "long": "x" * 5000,
    "braces": "{}[]",
    "zero byte": "a\u0000b",
}

TOPIC = topic(
    "request fields",
    "pair",
    [
        infer("whole", WHOLE),
        *(infer(f"without {'/'.join(map(str, path))}", without(*path)) for path in PLACES.values() if path[-1] not in ("id", "parameters", "outputs")),
        *(infer(f"{name} is {kind}", changed(*path, to=value)) for name, path in PLACES.items() for kind, value in VALUES.items()),
        *(Exchange(f"body {name}", (Http(PATH, body, "POST"),)) for name, body in (BODIES | TWICE).items()),
        *(infer(f"id {name}", {"id": value, **WHOLE}) for name, value in IDS.items()),
        *(infer(f"outputs {name}", {**WHOLE, "outputs": value}) for name, value in OUTPUTS.items()),
        *(infer(f"binary_data {name}", {**WHOLE, "outputs": [{**OUTPUT, "parameters": {"binary_data": value}}]}) for name, value in SWITCHES.items()),
        *(infer(f"binary_data_output {name}", {**WHOLE, "parameters": {"binary_data_output": value}}) for name, value in SWITCHES.items()),
        infer("binary_data_output but for one", {**WHOLE, "parameters": {"binary_data_output": True}, "outputs": [{**OUTPUT, "parameters": {"binary_data": False}}, {"name": "OUT_B"}]}),
        infer("binary and JSON outputs", {**WHOLE, "outputs": [OUTPUT, {"name": "OUT_B", "parameters": {"binary_data": True}}]}),
        *(infer(f"output parameters {name}", {**WHOLE, "outputs": [{**OUTPUT, "parameters": value}]}) for name, value in VALUES.items()),
        *(infer(f"further input parameter {name}", changed("inputs", 0, "parameters", to={"own": value})) for name, value in VALUES.items()),
        infer("further fields", {**WHOLE, "model_name": "other", "own": {"a": [1]}}),
        infer("an input twice", {"inputs": [*WHOLE["inputs"], WHOLE["inputs"][0]]}),
        infer("an input too many", {"inputs": [*WHOLE["inputs"], {**WHOLE["inputs"][0], "name": "IN_C"}]}),
        infer("an input too few", {"inputs": WHOLE["inputs"][:1]}),
        infer("inputs in another order", {"inputs": WHOLE["inputs"][::-1]}),
        infer("no inputs", {"inputs": []}),
        infer("an unknown input in place of another", changed("inputs", 0, "name", to="IN_C")),
        infer("no data but a size of zero", changed("inputs", 0, to={"name": "IN_A", "datatype": "INT32", "shape": [1, 2], "parameters": {"binary_data_size": 0}})),
        infer("data and a size", changed("inputs", 0, "parameters", to={"binary_data_size": 8})),
        *(infer(f"binary_data_size {name} without bytes", changed("inputs", 0, to={"name": "IN_A", "datatype": "INT32", "shape": [1, 2], "parameters": {"binary_data_size": value}})) for name, value in {**VALUES, "eight": 8, "negative": -8, "huge": 2**63, "past 64 bits": 2**64}.items()),
    ],
)  # fmt: skip
