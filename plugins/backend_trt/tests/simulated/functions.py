"""Functions of simulated engines: output shapes and output values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Shapes = dict[str, tuple[int, ...]]
Arrays = dict[str, np.ndarray]


class Function(NamedTuple):
    shapes: Callable[[Shapes, Arrays], Shapes]
    run: Callable[[Arrays, Arrays], Arrays]


def _expanded(inputs: Arrays, values: Arrays) -> Arrays:
    size = values["SIZE"]
    return {
        "FILLED": np.full(tuple(size), inputs["IN"][0, 0], np.float32),
        "SIZES": size.astype(np.int64),
    }


def _summed(inputs: Arrays, _values: Arrays) -> Arrays:
    total = inputs["IN"] + inputs["BEFORE"]
    return {"SUM": total, "AFTER": total}


def _like(source: str, *targets: str) -> Callable[[Shapes, Arrays], Shapes]:
    return lambda shapes, _values: dict.fromkeys(targets, shapes[source])


FUNCTIONS: dict[str, Any] = {
    "double": Function(_like("IN", "OUT"), lambda inputs, _: {"OUT": inputs["IN"] * 2}),
    "copy": Function(_like("IN", "OUT"), lambda inputs, _: {"OUT": inputs["IN"]}),
    "add_sub": Function(
        _like("A", "SUM", "DIFFERENCE"),
        lambda inputs, _: {
            "SUM": inputs["A"] + inputs["B"],
            "DIFFERENCE": inputs["A"] - inputs["B"],
        },
    ),
    "positives": Function(
        lambda _shapes, _values: {"OUT": (-1,)},
        lambda inputs, _: {"OUT": inputs["IN"][inputs["IN"] > 0]},
    ),
    "expand": Function(
        lambda shapes, values: {"FILLED": tuple(values["SIZE"]), "SIZES": shapes["SIZE"]}, _expanded
    ),
    "running_sum": Function(_like("IN", "SUM", "AFTER"), _summed),
}
