"""Tensors as JSON: every datatype, every nesting, and invalid values."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.exchange import Exchange, Http, post, topic

PATH = "/v2/models/datatypes/infer"
MATRIX = "/v2/models/raw_open/infer"
LIMITS: dict[str, tuple[Any, ...]] = {
    "UINT8": (0, 255, 256, -1),
    "UINT16": (65535, 65536, -1),
    "UINT32": (2**32 - 1, 2**32, -1),
    "UINT64": (2**63, 2**64 - 1, 2**64, -1),
    "INT8": (-128, 127, 128, -129),
    "INT16": (-(2**15), 2**15),
    "INT32": (-(2**31), 2**31 - 1, 2**31),
    "INT64": (-(2**63), 2**63 - 1, 2**63),
    "FP32": (0.1, 1e38, 1e39, -0.0, 16777217, 2**64 - 1, 1e-50),
    "FP64": (0.1, 1e308, 5e-324, -0.0, 2**53 + 1),
    "BOOL": (True, False),
}
STRANGE: dict[str, Any] = {
    "text": "1",
    "empty text": "",
    "null": None,
    "object": {},
    "true": True,
    "fraction": 1.5,
    "zero": 0,
    "one": 1,
    "two": 2,
    "whole fraction": 1.0,
}
NUMBERS = {
    "exponent": "1e2",
    "large exponent": "1e400",
    "negative zero": "-0",
    "NaN": "NaN",
    "Infinity": "Infinity",
    "leading zero": "01",
    "plus": "+1",
    "hexadecimal": "0x1",
    "trailing point": "1.",
}
SHAPES: dict[str, tuple[list[Any], Any]] = {
    "flat": ([2, 3], [1, 2, 3, 4, 5, 6]),
    "nested": ([2, 3], [[1, 2, 3], [4, 5, 6]]),
    "nested deeper than its shape": ([2, 3], [[[1], [2], [3]], [[4], [5], [6]]]),
    "nested otherwise": ([2, 3], [[1, 2], [3, 4], [5, 6]]),
    "rows of unequal length": ([2, 3], [[1, 2], [3, 4, 5, 6]]),
    "rows and elements": ([2, 3], [1, 2, 3, [4, 5, 6]]),
    "elements and rows": ([2, 3], [[1, 2, 3], 4, 5, 6]),
    "too few": ([2, 3], [1, 2, 3, 4, 5]),
    "too many": ([2, 3], [1, 2, 3, 4, 5, 6, 7]),
    "a row too few": ([2, 3], [[1, 2, 3]]),
    "a row too many": ([2, 3], [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
    "an empty row": ([2, 3], [[1, 2, 3, 4, 5, 6], []]),
    "nothing": ([0, 3], []),
    "empty rows": ([2, 0], [[], []]),
    "no elements but some": ([0, 3], [1]),
    "some elements but none": ([1, 1], []),
    "in one row": ([1, 6], [[1, 2, 3, 4, 5, 6]]),
    "a scalar": ([1, 1], 7),
    "one dimension too few": ([6], [1, 2, 3, 4, 5, 6]),
    "one dimension too many": ([1, 2, 3], [1, 2, 3, 4, 5, 6]),
    "no dimension": ([], [1]),
    "a negative dimension": ([-1, 2], [1, 2]),
    "two negative dimensions": ([-2, -3], [1, 2, 3, 4, 5, 6]),
    "a fraction": ([1.0, 2], [1, 2]),
    "a dimension as text": (["1", 2], [1, 2]),
    "a true dimension": ([True, 2], [1, 2]),
    "a dimension that is nothing": ([None, 2], [1, 2]),
    "a dimension that is a list": ([[1], 2], [1, 2]),
    "a huge dimension": ([2**62, 2], [1, 2]),
    "a dimension past 63 bits": ([2**63, 1], [1]),
    "a dimension past 64 bits": ([2**64, 1], [1]),
}
STRINGS: dict[str, Any] = {
    "text": ["one", ""],
    "unicode": ["größe", "模型", "😀"],
    "zero byte": ["a\u0000b"],
    "control characters": ['\u0001\u001f\t\n"\\'],
    "a number": [1],
    "a fraction": [1.5],
    "true": [True],
    "null": [None],
    "an object": [{"a": 1}],
    "nested": [["one"], ["two"]],
    "like JSON": ['["x"]'],
}


def sent(name: str, datatype: str, shape: list[Any], data: Any) -> dict[str, Any]:
    return {"inputs": [{"name": name, "datatype": datatype, "shape": shape, "data": data}]}


def of(datatype: str, *values: Any) -> Http:
    name = "STRING" if datatype == "BYTES" else datatype
    return post(PATH, sent(f"IN_{name}", datatype, [len(values)], list(values)))


def text(datatype: str, number: str) -> Http:
    return Http(
        PATH,
        json.dumps(sent(f"IN_{datatype}", datatype, [1], ["@"])).replace('"@"', number).encode(),
    )


def matrix(shape: list[Any], data: Any) -> Http:
    return post(MATRIX, sent("IN", "INT32", shape, data))


TOPIC = topic(
    "JSON tensors",
    "datatypes raw_open",
    [
        *(Exchange(f"{kind} {value!r}", (of(kind, value),)) for kind, values in LIMITS.items() for value in values),
        *(Exchange(f"{kind} {name}", (of(kind, value),)) for kind in LIMITS for name, value in STRANGE.items()),
        *(Exchange(f"{kind} written as {name}", (text(kind, number),)) for kind in ("INT32", "FP64") for name, number in NUMBERS.items()),
        *(Exchange(f"strings {name}", (of("BYTES", *values),)) for name, values in STRINGS.items()),
        *(Exchange(f"shape {name}", (matrix(shape, data),)) for name, (shape, data) in SHAPES.items()),
        *(Exchange(f"{kind} by JSON", (of(kind, 1), of(kind))) for kind in ("FP16", "BF16")),
        *(Exchange(f"nothing of {kind}", (of(kind),)) for kind in (*LIMITS, "BYTES")),
        *(
            Exchange(f"as {datatype}", (post(PATH, sent("IN_INT32", datatype, [1], [1])),))
            for datatype in ("", "INT33", "int32", "TYPE_INT32", "STRING", "BYTES", "FP32", "INVALID")
        ),
        Exchange("a surrogate alone", (text("STRING", '"\\ud800"'), post(PATH, sent("IN_STRING", "BYTES", [1], ["\ud800"])))),
    ],
)  # fmt: skip
