"""Plans for the simulated TensorRT: a real header, followed by the engine as JSON."""

from __future__ import annotations

import json
from typing import Any

VERSION = (11, 4, 0, 106)


def header(version=VERSION, tag=b"ftrt", layout=0) -> bytes:
    return tag + layout.to_bytes(4, "little") + bytes(16) + bytes(version)


def plan(
    function: str,
    tensors: list[dict[str, Any]],
    profiles: list[dict[str, Any]] | None = None,
    version=VERSION,
    **more: Any,
) -> bytes:
    """Return a plan whose engine runs `function`.

    `more`: weights, streamable, activations (bytes), host_code.
    """
    engine = {
        "function": function,
        "tensors": tensors,
        "profiles": profiles or [{}],
        "version": version,
        **more,
    }
    return header(version) + json.dumps(engine).encode()


def tensor(
    name: str, shape: list[int], dtype: str = "FLOAT", output: bool = False, **more: Any
) -> dict[str, Any]:
    """`more`: shape_io, packing (dimension, components)."""
    return {
        "name": name,
        "shape": shape,
        "dtype": dtype,
        "mode": "OUTPUT" if output else "INPUT",
        **more,
    }


def rows(
    *sizes: tuple[int, int, int], tail: tuple[int, ...] = (4,), names: tuple[str, ...] = ("IN",)
) -> list[dict[str, Any]]:
    """Profiles with different batch sizes: minimum, optimum and maximum of each."""
    return [{name: [[size, *tail] for size in each] for name in names} for each in sizes]


def double(largest: int = 8, **more: Any) -> bytes:
    """OUT = 2 * IN with four numbers per row, up to `largest` rows."""
    return plan(
        "double",
        [tensor("IN", [-1, 4]), tensor("OUT", [-1, 4], output=True)],
        rows((1, min(4, largest), largest)),
        **more,
    )


def add_sub(datatype: str = "INT32", **more: Any) -> bytes:
    """SUM = A + B and DIFFERENCE = A - B, up to eight rows of four numbers."""
    tensors = [
        tensor(name, [-1, 4], datatype, output=name not in "AB")
        for name in ("A", "B", "SUM", "DIFFERENCE")
    ]
    return plan("add_sub", tensors, rows((1, 4, 8), names=("A", "B")), **more)


def fixed() -> bytes:
    """OUT = 2 * IN, of exactly two by three numbers."""
    return plan("double", [tensor("IN", [2, 3]), tensor("OUT", [2, 3], output=True)])


def positives() -> bytes:
    """OUT has the positive numbers of IN, so its size depends on the data."""
    return plan(
        "positives",
        [tensor("IN", [-1]), tensor("OUT", [-1], output=True)],
        [{"IN": [[1], [4], [16]]}],
    )


def expand(batched: bool) -> bytes:
    """FILLED has the shape in SIZE, filled with the first number of IN; SIZES repeats SIZE."""
    size = 3 if batched else 2
    tensors = [
        tensor("IN", [-1, 2]), tensor("SIZE", [size], "INT32", shape_io=True),
        tensor("FILLED", [-1] * size, output=True), tensor("SIZES", [size], "INT64", output=True, shape_io=True),
    ]  # fmt: skip
    least, best, most = ([1, 1], [2, 2], [4, 5])
    values = [[1, *least], [2, *best], [8, *most]] if batched else [least, best, most]
    return plan("expand", tensors, [{"IN": [[1, 2], [2, 2], [8, 2]], "SIZE": values}])


def running_sum() -> bytes:
    """SUM = IN + BEFORE, AFTER = SUM: with BEFORE and AFTER as a state the sum of a sequence."""
    names = {"IN": False, "BEFORE": False, "SUM": True, "AFTER": True}
    return plan(
        "running_sum",
        [tensor(name, [-1, 1], output=output) for name, output in names.items()],
        rows((1, 2, 4), tail=(1,), names=("IN", "BEFORE")),
    )


def packed() -> bytes:
    """OUT = IN, both with three channels in vectors of four."""
    tensors = [
        tensor(name, [-1, 3, 2, 2], "HALF", output=name == "OUT", packing=[1, 4])
        for name in ("IN", "OUT")
    ]
    return plan("copy", tensors, [{"IN": [[1, 3, 2, 2], [2, 3, 2, 2], [4, 3, 2, 2]]}])


def grid() -> bytes:
    """OUT = 2 * IN, with rows of any size up to 4 by 8."""
    shapes = {"IN": [[1, 1, 1], [2, 2, 4], [4, 4, 8]]}
    return plan(
        "double", [tensor("IN", [-1, -1, -1]), tensor("OUT", [-1, -1, -1], output=True)], [shapes]
    )
