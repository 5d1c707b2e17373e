"""Models with implicit state."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from onnx import helper

from tritonpy_testing import (
    InferenceServerException,
    InferInput,
    InferRequestedOutput,
    InProcessClient,
    running_server,
)

NO_PORTS = {"http": False, "grpc": False, "metrics": False}
STRATEGIES = {"direct": "direct {}", "oldest": "oldest { max_candidate_sequences: 4 }"}
MODES = {
    "thread": "",
    "process": 'parameters { key: "isolation" value { string_value: "process" } }',
}
WAYS = [("direct", "thread"), ("oldest", "process")]


def config(way, kind, dims, more="", batch=4, inputs=True):
    strategy, mode = way
    tensors = f"""
        input {{ name: "IN" data_type: TYPE_{kind} dims: 1 }}
        output {{ name: "OUT" data_type: TYPE_{kind} dims: {dims} }}
    """
    return f"""
        backend: "onnxruntime" max_batch_size: {batch} {tensors if inputs else ""} {MODES[mode]}
        sequence_batching {{
            {STRATEGIES[strategy]} max_sequence_idle_microseconds: 60000000
            state {{ input_name: "OLD" output_name: "NEW" data_type: TYPE_{kind} dims: {dims} {more} }}
        }}
    """


@pytest.fixture
def ask_all(models, model_repository) -> Callable:
    """`ask_all(config, kind, steps)`: the responses to (sequence, value) pairs in order.

    The last request of each sequence ends it.
    """

    def run(text, kind, steps, shape=(1, 1), output="OUT"):
        model_repository.add("m", text, {1: {"model.onnx": models.path.read_bytes()}})
        settings = {"repositories": [{"url": str(model_repository.path)}], "frontends": NO_PORTS}
        ids = [sequence for sequence, _ in steps]
        with running_server(settings) as server:
            client, calls = InProcessClient(server), []
            for at, (sequence, value) in enumerate(steps):
                data = np.array([value], object if kind == "BYTES" else np.float32).reshape(shape)
                tensor = InferInput("IN", list(shape), kind).set_data_from_numpy(data)
                flags = {
                    "sequence_start": sequence not in ids[:at],
                    "sequence_end": sequence not in ids[at + 1 :],
                }
                outputs = [InferRequestedOutput(output)]
                calls.append(
                    client.async_infer(
                        "m", [tensor], outputs=outputs, sequence_id=sequence, **flags
                    )
                )
            return [call.get_result().as_numpy(output).ravel().tolist() for call in calls]

    return run


def folding(models, shape):
    """OUT = NEW = OLD + IN."""
    nodes = [
        helper.make_node("Add", ["OLD", "IN"], ["NEW"]),
        helper.make_node("Identity", ["NEW"], ["OUT"]),
    ]
    models.write(
        nodes,
        dict.fromkeys(("IN", "OLD"), ("FP32", shape)),
        dict.fromkeys(("OUT", "NEW"), ("FP32", shape)),
    )


STEPS = [(1, 1.0), (2, 10.0), (1, 2.0), (2, 20.0), (1, 3.0), (2, 30.0)]
TOTALS = [[1], [10], [3], [30], [6], [60]]


@pytest.mark.parametrize("way", list(product(STRATEGIES, MODES)))
def test_a_sequence_adds_up(models, ask_all, way):
    folding(models, ["batch", 1])
    assert ask_all(config(way, "FP32", 1), "FP32", STEPS) == TOTALS


def test_one_buffer_gives_the_same(models, ask_all):
    folding(models, ["batch", 1])
    assert (
        ask_all(config(WAYS[0], "FP32", 1, "use_same_buffer_for_input_output: true"), "FP32", STEPS)
        == TOTALS
    )


@pytest.mark.parametrize("way", WAYS)
def test_scalars_of_a_model_that_does_not_batch(models, ask_all, way):
    folding(models, [])
    one_after_the_other = sorted(STEPS)
    assert ask_all(config(way, "FP32", 1, batch=0), "FP32", one_after_the_other, (1,)) == [
        [1],
        [3],
        [6],
        [10],
        [30],
        [60],
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["FP32", "BYTES"])
def test_states_grow(models, ask_all, way, kind):
    nodes = [
        helper.make_node("Concat", ["OLD", "IN"], ["NEW"], axis=1),
        helper.make_node("Identity", ["NEW"], ["OUT"]),
    ]
    inputs = {"IN": (kind, ["batch", 1]), "OLD": (kind, ["batch", "old"])}
    models.write(nodes, inputs, {name: (kind, ["batch", "new"]) for name in ("OUT", "NEW")})
    values, nothing = ([b"a", b"bc", b""], b"") if kind == "BYTES" else ([1.0, 2.0, 3.0], 0.0)
    text = config(way, kind.replace("BYTES", "STRING"), -1)
    steps = [(sequence, value) for value in values for sequence in (1, 2)]
    grown = [[nothing, *values[: count + 1]] for count in range(3)]
    assert ask_all(text, kind, steps) == [grown[count] for count in range(3) for _ in (1, 2)]


def test_a_state_is_an_output_where_the_configuration_says_so(models, ask_all):
    folding(models, ["batch", 1])
    text = config(WAYS[0], "FP32", 1)
    with pytest.raises(
        InferenceServerException, match="unexpected inference output 'NEW' for model 'm'"
    ):
        ask_all(text, "FP32", STEPS, output="NEW")
    text += 'output { name: "NEW" data_type: TYPE_FP32 dims: 1 }'
    assert ask_all(text, "FP32", STEPS, output="NEW") == TOTALS


def test_a_state_of_another_shape_is_named_in_the_error(models, ask_all):
    nodes = [
        helper.make_node("Concat", ["OLD", "IN"], ["NEW"], axis=1),
        helper.make_node("Identity", ["IN"], ["OUT"]),
    ]
    inputs = {"IN": ("FP32", ["batch", 1]), "OLD": ("FP32", ["batch", "old"])}
    models.write(nodes, inputs, {"OUT": ("FP32", ["batch", 1]), "NEW": ("FP32", ["batch", "new"])})
    text = (
        r"model 'm' returned state output 'NEW' with shape \[1,2\], its configuration says \[1,1\]"
    )
    with pytest.raises(InferenceServerException, match=text):
        ask_all(config(WAYS[0], "FP32", 1), "FP32", STEPS[:1])


def test_initial_values_come_from_a_file(models, ask_all, model_repository):
    folding(models, ["batch", 1])
    folder = model_repository.path / "m" / "initial_state"
    folder.mkdir(parents=True)
    (folder / "hundred").write_bytes(np.array([100], np.float32).tobytes())
    initial = 'initial_state { name: "i" data_type: TYPE_FP32 dims: 1 data_file: "hundred" }'
    found = ask_all(config(WAYS[0], "FP32", 1, initial), "FP32", STEPS)
    assert found == [[total + 100] for (total,) in TOTALS]


def test_completion_adds_only_client_inputs_and_outputs(models, ask_all):
    folding(models, ["batch", 1])
    text = config(WAYS[0], "FP32", 1, inputs=False)
    assert ask_all(text, "FP32", STEPS) == TOTALS
    with pytest.raises(
        InferenceServerException, match="unexpected inference output 'NEW' for model 'm'"
    ):
        ask_all(text, "FP32", STEPS, output="NEW")
