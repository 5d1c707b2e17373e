"""Models in the formats of large frameworks, written byte by byte; each computes `y = 2 * x`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from flatbuffers import Builder

FLOAT = 1  # TensorFlow's number of the type; PaddlePaddle's is 5
PADDLE_FLOAT = 5


def number(field: int, value: int) -> bytes:
    """An integer field of a protobuf message."""
    return varint(field << 3) + varint(value)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def part(field: int, *content: bytes | str) -> bytes:
    """A text, bytes or message field of a protobuf message."""
    whole = b"".join([each.encode() if isinstance(each, str) else each for each in content])
    return varint(field << 3 | 2) + varint(len(whole)) + whole


def entry(field: int, key: str, value: bytes) -> bytes:
    return part(field, part(1, key), part(2, value))


def shape(*dims: int) -> bytes:
    return b"".join([part(2, number(1, dim)) for dim in dims])


def node(name: str, kind: str, *inputs: str, **attributes: bytes) -> bytes:
    sources = b"".join([part(3, each) for each in inputs])
    return part(
        1,
        part(1, name),
        part(2, kind),
        sources,
        *[entry(5, key, value) for key, value in attributes.items()],
    )


def tensorflow_graph() -> bytes:
    """A frozen graph: y[-1, 2] = x + x * 1."""
    one = part(8, number(1, FLOAT), part(2), part(4, np.float32(1).tobytes()))
    kind = number(6, FLOAT)
    return b"".join(
        [
            node("x", "Placeholder", dtype=kind, shape=part(7, shape(-1, 2))),
            node("one", "Const", dtype=kind, value=one),
            node("same", "Mul", "x", "one", T=kind),
            node("y", "AddV2", "x", "same", T=kind),
            part(4, number(1, 1000)),
        ]
    )


def write_frozen_graph(path: Path) -> None:
    path.write_bytes(tensorflow_graph())


def write_saved_model(folder: Path) -> None:
    def tensor(key: str, name: str) -> bytes:
        return part(1, key) + part(2, part(1, name), number(2, FLOAT), part(3, shape(-1, 2)))

    signature = (
        part(1, tensor("x", "x:0"))
        + part(2, tensor("y", "y:0"))
        + part(3, "tensorflow/serving/predict")
    )
    graph = (
        part(1, part(4, "serve"))
        + part(2, tensorflow_graph())
        + entry(5, "serving_default", signature)
    )
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(number(1, 1) + part(2, graph))


def write_paddle(path: Path) -> None:
    def variable(name: str, kind: int, *dims: int) -> bytes:
        tensor = part(1, number(1, PADDLE_FLOAT), *[number(2, dim) for dim in dims])
        described = part(3, tensor, number(2, 0)) if dims else b""
        return part(3, part(1, name), part(2, number(1, kind), described), number(3, int(not dims)))

    def operator(
        kind: str, source: tuple[str, str], target: tuple[str, str], *attributes: bytes
    ) -> bytes:
        given, made = (part(1, name) + part(2, argument) for name, argument in (source, target))
        return part(
            4, part(1, given), part(2, made), part(3, kind), *[part(4, each) for each in attributes]
        )

    column = part(1, "col") + number(2, 0) + number(3, 0)
    doubled = part(1, "scale") + number(2, 1) + varint(4 << 3 | 5) + np.float32(2).tobytes()
    bias = part(1, "bias") + number(2, 1) + varint(4 << 3 | 5) + np.float32(0).tobytes()
    after = part(1, "bias_after_scale") + number(2, 6) + number(10, 1)
    block = b"".join(
        [
            number(1, 0),
            number(2, (1 << 32) - 1),
            variable("feed", 9),
            variable("fetch", 10),
            variable("x", 7, -1, 2),
            variable("y", 7, -1, 2),
            operator("feed", ("X", "feed"), ("Out", "x"), column),
            operator("scale", ("X", "x"), ("Out", "y"), doubled, bias, after),
            operator("fetch", ("X", "y"), ("Out", "fetch"), column),
        ]
    )
    path.write_bytes(part(1, block) + part(4, number(1, 2004000)))
    path.with_suffix(".pdiparams").write_bytes(b"")


def write_lite(path: Path) -> None:
    """TensorFlow Lite: y[-1, 2] = x + x, as a flatbuffer."""
    builder = Builder(1024)

    def numbers(values: Sequence[int]) -> int:
        builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            builder.PrependInt32(value)
        return int(builder.EndVector())

    def references(*offsets: int) -> int:
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())

    def table(size: int, parts: dict[int, int] | None = None, **values: tuple[int, int]) -> int:
        builder.StartObject(size)
        for slot, offset in (parts or {}).items():
            builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
        for kind, (slot, value) in values.items():
            getattr(builder, f"Prepend{kind}Slot")(slot, value, 0)
        return int(builder.EndObject())

    names = [builder.CreateString(name) for name in ("x", "y", "main")]
    tensors = [table(8, {0: numbers([1, 2]), 3: name, 7: numbers([-1, 2])}) for name in names[:2]]
    add = table(
        5, {1: numbers([0, 0]), 2: numbers([1]), 4: table(2)}, Uint8=(3, 11)
    )  # 11: the options are those of ADD
    parts = {
        0: references(*tensors),
        1: numbers([0]),
        2: numbers([1]),
        3: references(add),
        4: names[2],
    }
    code = table(4, Int32=(2, 1))  # the code of ADD is 0, its version 1
    whole = {1: references(code), 2: references(table(5, parts)), 4: references(table(1))}
    builder.Finish(table(5, whole, Uint32=(0, 3)), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
