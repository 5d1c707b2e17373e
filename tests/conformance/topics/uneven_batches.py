"""Unequal requests: the batches that they form, and the inputs of a Python model."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, get, topic
from tests.conformance.inference import Given, Inference, both, given, streamed

MODELS = "seeing seeing_shapes seeing_optional seeing_reshaped seeing_shape_tensor"


def ints(*shape: int, first: int = 0) -> Given:
    """Return ascending numbers in a shape."""
    count = 1
    for size in shape:
        count *= size
    return given("INT32", *range(first, first + count), shape=shape)


def together(name: str, model: str, *requests: dict[str, Given]) -> Exchange:
    """Return the exchange of requests that are sent in order."""
    inferences = [
        Inference(model, inputs, id=str(number)) for number, inputs in enumerate(requests)
    ]
    return Exchange(f"{model}: {name}", (streamed(*inferences),), {model: len(inferences)})


ONE = ints(1, 1)
TOPIC = topic(
    "uneven batches",
    MODELS,
    [
        together("four shapes", "seeing", *[{"A": ints(1, size)} for size in (2, 5, 1, 3)]),
        together("rows and shapes", "seeing", {"A": ints(2, 3)}, {"A": ints(1, 7)}, {"A": ints(1, 1)}),
        together("too many rows", "seeing", {"A": ints(3, 1)}, {"A": ints(2, 2)}),
        together("with and without the other input", "seeing", {"A": ints(1, 2), "B": ONE}, {"A": ints(1, 3)}, {"A": ints(1, 4)}),
        together("an empty one", "seeing", {"A": ints(1, 0)}, {"A": ints(1, 3)}, {"A": ints(2, 2)}),
        together("one shape", "seeing_shapes", *[{"A": ints(1, 2, 2, first=number)} for number in range(4)]),
        together("two shapes", "seeing_shapes", {"A": ints(1, 1, 2)}, {"A": ints(2, 1, 2)}, {"A": ints(1, 2, 1)}),
        together("shapes that alternate", "seeing_shapes", *[{"A": ints(1, 1, size)} for size in (1, 2, 1, 2)]),
        together("all of them", "seeing_optional", *[{"A": ONE, "B": ints(1, 2)}] * 4),
        together("one or the other", "seeing_optional", {"A": ONE}, {"A": ONE}, {"B": ONE}, {"B": ONE}, {"A": ONE, "B": ONE}),
        together("the same ones in another order", "seeing_optional", {"A": ONE, "B": ONE}, {"B": ONE, "A": ONE}, {"A": ints(2, 1), "B": ints(2, 1)}),
        together("an open dimension that differs", "seeing_optional", {"B": ints(1, 1)}, {"B": ints(1, 1)}, {"B": ints(1, 2)}),
        *both("seeing_optional: none", Inference("seeing_optional", {}), counted=False),
        together("four", "seeing_reshaped", *[{"A": ints(1, 1, first=number)} for number in range(4)]),
        together("with open dimensions", "seeing_reshaped", *[{"A": ONE, "B": ints(1, 3, 2, 1)}] * 2, {"A": ints(2, 1), "B": ints(2, 3, 2, 1)}),
        together("open dimensions that differ", "seeing_reshaped", {"A": ONE, "B": ints(1, 3, 2, 1)}, {"A": ONE, "B": ints(1, 1, 2, 3)}),
        *both("seeing_reshaped: one", Inference("seeing_reshaped", {"A": ONE, "B": ints(1, 2, 2, 2)})),
        *both("seeing_reshaped: the shape inside", Inference("seeing_reshaped", {"A": ints(1)}), counted=False),
        together("equal shape tensors", "seeing_shape_tensor", *[{"A": ONE, "B": ints(2)}] * 4),
        together("shape tensors and rows", "seeing_shape_tensor", {"A": ints(2, 1), "B": ints(2)}, {"A": ONE, "B": ints(2)}, {"A": ONE, "B": ints(2)}),
        together("shape tensors that differ", "seeing_shape_tensor", {"A": ONE, "B": ints(2, first=5)}, {"A": ONE, "B": ints(2, first=5)}, {"A": ONE, "B": ints(2, first=6)}),
        *both("seeing_shape_tensor: with a row", Inference("seeing_shape_tensor", {"A": ONE, "B": ints(1, 2)}), counted=False),
        *both("seeing_shape_tensor: another length", Inference("seeing_shape_tensor", {"A": ONE, "B": ints(3)}), counted=False),
        *(
            Exchange(f"{model}: {what}", (get(f"/v2/models/{model}{path}"),))
            for model in MODELS.split()
            for what, path in (("metadata", ""), ("configuration", "/config"))
        ),
    ],
)  # fmt: skip
