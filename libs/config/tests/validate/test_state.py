from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.sequence import state_problems
from tritonpy_protos.model_config_pb2 import ModelConfig

BARE = 'state { input_name: "s" output_name: "o" data_type: TYPE_FP32 dims: -1 }'
GROWABLE = BARE.replace(
    "dims", "use_same_buffer_for_input_output: true use_growable_memory: true dims"
)
INITIAL = 'name: "i" data_type: TYPE_FP32 dims: 3 zero_data: true'


def state(initial=INITIAL):
    return f'state {{ input_name: "s" output_name: "o" data_type: TYPE_FP32 dims: 3 initial_state {{ {initial} }} }}'


def problems(text):
    config = text_format.Parse(f"sequence_batching {{ {text} }}", ModelConfig(name="m"))
    return [(each.path, each.text) for each in state_problems(config)]


def test_valid_states_have_no_problems():
    assert problems(BARE) == []
    assert problems(state()) == []
    assert (
        problems(state().replace("TYPE_FP32 dims: 3 initial", "TYPE_FP32 dims: -1 initial")) == []
    )


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (
            state().replace(f"initial_state {{ {INITIAL} }}", "initial_state: [{}, {}]"),
            "state[0].initial_state",
            "initial_state field for state input 's' must contain exactly one or zero element. Found '2' elements.",
        ),
        (
            state(INITIAL.replace("FP32", "INT8")),
            "state[0].initial_state[0].data_type",
            "The data type used for 'initial_state' field of state 's' does not match the state data type.",
        ),
        (
            state(INITIAL.replace('"i"', '""')),
            "state[0].initial_state[0]",
            "Field 'name' must be set when using initial_state for state input 's'.",
        ),
        (
            state() + state().replace('"o"', '"p"'),
            "state[1].input_name",
            "State input name 's' specified more than once.",
        ),
        (BARE.replace('"s"', '""'), "state[0]", "a state must specify 'input_name'"),
        (
            BARE.replace("TYPE_FP32", "TYPE_INVALID"),
            "state[0]",
            "state 's' must specify 'data_type'",
        ),
        (
            BARE.replace("-1", "0"),
            "state[0].dims",
            "state 's': a dimension is an integer >= 1, or -1 for any size",
        ),
        (
            BARE + BARE.replace('"s"', '"t"'),
            "state[1].output_name",
            "State output name 'o' specified more than once.",
        ),
        (
            BARE.replace("dims", "use_growable_memory: true dims"),
            "state[0].use_growable_memory",
            "In order to 'use_growable_memory', you must also enable 'use_single_buffer' for state input name 's'.",
        ),
        (
            state(INITIAL.replace("dims: 3", "dims: [3, 1]")),
            "state[0].initial_state[0].dims",
            (
                "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 's'. "
                "2 != 1"
            ),
        ),
        (
            state(INITIAL.replace("dims: 3", "dims: -1")),
            "state[0].initial_state[0].dims[0]",
            "'initial_state' field for state input name 's' contains variable dimensions.",
        ),
        (
            state(INITIAL.replace("dims: 3", "dims: 4")),
            "state[0].initial_state[0].dims[0]",
            "'initial_state' dim for input name 's' doesn't match 'state' dim description. 4 != 3",
        ),
    ],
)
def test_a_mismatched_initial_state_is_reported(text, path, expected):
    assert problems(text) == [(f"sequence_batching.{path}", expected)]


def test_growable_memory_needs_a_gpu():
    def found(kind):
        text = f"sequence_batching {{ {GROWABLE} }} instance_group {{ kind: {kind} }}"
        return [
            each.text for each in state_problems(text_format.Parse(text, ModelConfig(name="m")))
        ]

    assert found("KIND_GPU") == []
    (text,) = found("KIND_CPU")
    assert text == (
        "'use_growable_memory' can only work with KIND_GPU model instances right now. Please either change the instance type "
        "to KIND_GPU or set 'use_growable_memory' to false for state input 's'."
    )
