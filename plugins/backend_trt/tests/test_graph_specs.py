from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_trt.graph_specs import GraphSpec, graph_specs

from .descriptions import config

ON = "optimization { cuda { graphs: true } }"


def spec(text, batch=8):
    return config(
        f"max_batch_size: {batch} optimization {{ cuda {{ graphs: true graph_spec {{ {text} }} }} }}"
    )


def test_graphs_are_off_unless_the_configuration_has_them():
    assert (
        graph_specs(
            config("max_batch_size: 8 optimization { cuda { graph_spec { batch_size: 99 } } }")
        )
        == []
    )


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("max_batch_size: 10", [1, 2, 3, 4, 6, 8, 10]),
        ("max_batch_size: 2", [1, 2]),
        ("max_batch_size: 0", [0]),
        ("max_batch_size: 8 dynamic_batching { preferred_batch_size: [4, 16] }", [1, 4, 8]),
        ("max_batch_size: 8 sequence_batching { oldest { preferred_batch_size: 2 } }", [1, 2, 8]),
        ("max_batch_size: 3 sequence_batching { direct { } }", [1, 2, 3]),
    ],
)
def test_without_specs_small_and_preferred_batches_get_graphs(text, sizes):
    assert graph_specs(config(f"{text} {ON}")) == [GraphSpec(size, size) for size in sizes]


def test_a_spec_gives_shapes_and_lower_bounds():
    shape = "input { key: 'A' value { dim: [4, 8] } }"
    least = "graph_lower_bound { batch_size: 2 input { key: 'A' value { dim: [1, 8] } } }"
    assert graph_specs(spec(f"batch_size: 4 {shape} {least}")) == [
        GraphSpec(4, 2, {"A": (4, 8)}, {"A": (1, 8)})
    ]
    assert graph_specs(spec(f"batch_size: 4 {shape}")) == [
        GraphSpec(4, 4, {"A": (4, 8)}, {"A": (4, 8)})
    ]


def bound(least, shape="dim: 4"):
    return f"batch_size: 1 input {{ key: 'A' value {{ {shape} }} }} graph_lower_bound {{ batch_size: 1 {least} }}"


@pytest.mark.parametrize(
    ("text", "batch", "message"),
    [
        ("batch_size: 1", 0, "graph spec expects 'batch_size' to be 0 if 'max_batch_size' is 0"),
        ("batch_size: 9", 8, "graph spec expects 'batch_size' to be >= 1 and <= 8"),
        ("", 8, "graph spec expects 'batch_size' to be >= 1 and <= 8"),
        (
            "batch_size: 2 graph_lower_bound { batch_size: 3 }", 8,
            "graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'",
        ),
        (bound(""), 8, "graph lower bound spec expects shape for input 'A'"),
        (bound("input { key: 'A' value { dim: [1, 1] } }"), 8, "graph lower bound spec expects to have '1 dimensions, got 2"),
        (bound("input { key: 'A' value { dim: -1 } }"), 8, "graph spec expects input 'A' to have dimension >= 0"),
        (bound("input { key: 'A' value { dim: 5 } }"), 8, "graph lower bound spec expects input 'A' to have dimension <= 4"),
    ],
)  # fmt: skip
def test_an_invalid_spec_is_rejected_with_tritons_text(text, batch, message):
    with pytest.raises(InvalidArgument) as caught:
        graph_specs(spec(text, batch))
    assert caught.value.message == message
