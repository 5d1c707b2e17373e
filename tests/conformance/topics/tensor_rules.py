"""Rules of a configuration for requests: batch sizes, shapes, optional inputs, reshaped tensors."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, topic
from tests.conformance.inference import Given, Inference, given

A = given("INT32", 1, 2, shape=(1, 2))
B = given("INT32", 3, 4, 5, shape=(1, 3))
C = given("BYTES", "x", shape=(1, 1))


def over_both(name: str, model: str, **inputs: Given) -> list[Exchange]:
    inference = Inference(model, inputs)
    return [
        Exchange(f"{name}/http", (inference.json(),)),
        Exchange(f"{name}/grpc", (inference.grpc(),)),
    ]


def ints(*shape: int) -> Given:
    count = 1
    for size in shape:
        count *= size
    return given("INT32", *range(count), shape=shape)


SHAPES = {
    "no batch dimension": (2,),
    "no dimension": (),
    "a batch of none": (0, 2),
    "a full batch": (4, 2),
    "too large a batch": (5, 2),
    "another size": (1, 3),
    "a dimension too many": (1, 1, 2),
    "no elements": (1, 0),
}
OPEN = {
    "one row": (1, 2, 1),
    "no elements": (1, 2, 0),
    "another fixed size": (1, 3, 1),
    "too large a batch": (5, 2, 1),
}
RESHAPED = {
    "IN_SCALAR": {
        "one": (1, 1),
        "a batch": (3, 1),
        "no dimension left": (1,),
        "two": (1, 2),
        "as reshaped": (),
    },
    "IN_FLAT": {"one": (1, 2, 2), "a batch": (3, 2, 2), "as reshaped": (1, 4)},
    "IN_OPEN": {
        "one": (1, 3, 2),
        "a batch": (2, 3, 2),
        "as reshaped": (1, 1, 3, 2),
        "no elements": (1, 0, 2),
    },
}

TOPIC = topic(
    "tensor rules",
    "pair raw_batched reshaped some_optional identity raw_one raw_open",
    [
        *(
            over_both(f"one of two inputs with {name}", "pair", IN_A=ints(*shape), IN_B=C)
            for name, shape in SHAPES.items()
        ),
        *(
            over_both(f"an open dimension with {name}", "raw_batched", IN=ints(*shape))
            for name, shape in OPEN.items()
        ),
        *(
            over_both(f"{name} reshaped with {kind}", "reshaped", **{name: ints(*shape)})
            for name, shapes in RESHAPED.items()
            for kind, shape in shapes.items()
        ),
        over_both(
            "reshaped all at once",
            "reshaped",
            IN_SCALAR=ints(2, 1),
            IN_FLAT=ints(2, 2, 2),
            IN_OPEN=ints(2, 1, 2),
        ),
        over_both("batches that differ", "pair", IN_A=ints(2, 2), IN_B=C),
        over_both("a fixed shape of another size", "raw_one", IN=ints(4)),
        over_both("a fixed shape with a batch", "raw_one", IN=ints(1, 3)),
        over_both("open dimensions", "raw_open", IN=ints(2, 3)),
        over_both("an open dimension too few", "raw_open", IN=ints(6)),
        over_both("all optional inputs", "some_optional", IN_A=A, IN_B=B, IN_C=C),
        over_both("one optional input", "some_optional", IN_A=A, IN_C=C),
        over_both("no optional input", "some_optional", IN_A=A),
        over_both("optional inputs alone", "some_optional", IN_B=B, IN_C=C),
        over_both("no input", "some_optional"),
        over_both(
            "an optional input of another datatype",
            "some_optional",
            IN_A=A,
            IN_B=given("FP32", 1, shape=(1, 1)),
        ),
        over_both(
            "an optional input of another shape",
            "some_optional",
            IN_A=A,
            IN_C=given("BYTES", "a", "b", shape=(1, 2)),
        ),
        over_both("an optional input of another batch", "some_optional", IN_A=A, IN_B=ints(2, 1)),
        over_both("an unknown input besides", "some_optional", IN_A=A, IN_D=B),
        over_both("an unknown input instead", "some_optional", IN_D=A),
        over_both("inputs too many", "some_optional", IN_A=A, IN_B=B, IN_C=C, IN_D=C),
    ],
)
