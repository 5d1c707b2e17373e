from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy.config.validate.state import state_problems
from tritonpy_protos.model_config_pb2 import ModelConfig

INITIAL = 'name: "i" data_type: TYPE_FP32 dims: 3 zero_data: true'


def state(initial=INITIAL):
    return f'state {{ input_name: "s" output_name: "o" data_type: TYPE_FP32 dims: 3 initial_state {{ {initial} }} }}'


def problems(text):
    config = text_format.Parse(f"sequence_batching {{ {text} }}", ModelConfig(name="m"))
    return [(each.path, each.text) for each in state_problems(config)]


def test_sound_states_have_no_problems():
    assert problems('state { input_name: "s" output_name: "o" data_type: TYPE_FP32 dims: -1 }') == []
    assert problems(state()) == []
    assert problems(state().replace("TYPE_FP32 dims: 3 initial", "TYPE_FP32 dims: -1 initial")) == []


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
        (state() + state(), "state[1].input_name", "State input name 's' specified more than once."),
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
def test_an_initial_state_that_does_not_fit_is_named(text, path, expected):
    assert problems(text) == [(f"sequence_batching.{path}", expected)]
