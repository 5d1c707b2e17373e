from __future__ import annotations

import logging

import pytest
from google.protobuf import text_format

from tritonpy import Code, TritonError
from tritonpy_backend_torch.name_mapping import map_names
from tritonpy_backend_torch.signature import Signature, TensorSpec
from tritonpy_protos.model_config_pb2 import ModelConfig

LOG = logging.LoggerAdapter(logging.getLogger("tritonpy.backend"))
FREE = Signature((TensorSpec(("x",)), TensorSpec(("y",))), has_free_names=True)
KNOWN = Signature(
    (TensorSpec(("x", "ARGS[0]", "INPUT__0")), TensorSpec(("y", "ARGS[1]", "INPUT__1"))),
    (TensorSpec(("OUTPUT__0", "RESULT")),),
)
ANYTHING = Signature((), has_free_names=True)
DICTIONARY = Signature((TensorSpec(("inputs",)),), has_free_names=True, takes_dict=True)


def config(inputs, outputs=("OUTPUT__0",), more=""):
    fields = "".join(f'input {{ name: "{name}" }} ' for name in inputs) + "".join(
        f'output {{ name: "{name}" }} ' for name in outputs
    )
    return text_format.Parse(f'name: "m" {fields} {more}', ModelConfig())


def mapping(inputs, outputs=("OUTPUT__0",), signature=FREE, more=""):
    return map_names(config(inputs, outputs, more), signature, LOG)


def refusal(*arguments, **named):
    with pytest.raises(TritonError) as refused:
        mapping(*arguments, **named)
    return refused.value


@pytest.mark.parametrize(
    ("inputs", "signature", "numbers"),
    [
        (("y", "x"), FREE, [1, 0]),  # arguments of forward
        (("IN__1", "OTHER__0"), FREE, [1, 0]),  # numbers
        (("first", "second"), FREE, [0, 1]),  # the order of the configuration
        (("x", "INPUT__1"), FREE, [0, 1]),  # neither all arguments nor all numbered
        (("IN__1", "IN__0"), ANYTHING, [1, 0]),
        (("b", "a"), ANYTHING, [0, 1]),
        (("b", "a", "IN__7"), DICTIONARY, [0, 1, 2]),
        (("ARGS[1]", "x"), KNOWN, [1, 0]),
    ],
)
def test_inputs_are_named_by_argument_number_or_order(inputs, signature, numbers):
    assert list(mapping(inputs, signature=signature).inputs.values()) == numbers


@pytest.mark.parametrize(
    ("outputs", "numbers"),
    [(("OUTPUT__1", "ANY__0"), [1, 0]), (("b", "a"), [0, 1]), (("OUTPUT__1", "a"), [0, 1])],
)
def test_outputs_are_named_by_number_or_order(outputs, numbers):
    assert list(mapping(("x", "y"), outputs).outputs.values()) == numbers


def test_an_incomplete_index_is_logged(caplog):
    mapping(("a__b", "c"), ("d__e",))
    assert (
        "input 'a__b' or previous input(s) are neither an input argument to the model 'm' nor do they follow the"
        in caplog.text
    )
    assert (
        "output 'd__e' or previous output(s) of the model 'm' do not follow the <name>__<index>"
        in caplog.text
    )
    caplog.clear()
    mapping(("a", "b"))
    assert not caplog.records


def test_an_unknown_name_is_rejected():
    error = refusal(("x", "z"), signature=KNOWN)
    assert error.code is Code.INTERNAL
    assert error.message.startswith(
        'Input "z" for model instance "m" is not found in model input map.'
    )
    error = refusal(("x", "y"), ("RESULT[1]",), signature=KNOWN)
    assert error.message.startswith(
        'Output "RESULT[1]" for model instance "m" is not found in model output map.'
    )


def test_an_index_beyond_the_arguments_is_refused():
    assert refusal(("A__0", "B__2")).message == (
        "unable to load model 'm', input 'B__2' refers to an input index which doesn't exist. This model has 2 inputs"
    )


def test_two_names_of_one_input_are_refused():
    assert (
        refusal(("A__0", "B__0")).message
        == "unable to load model 'm', inputs 'A__0' and 'B__0' are the same input of the model"
    )


START = 'sequence_batching { control_input { name: "%s" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } } }'
STATE = 'sequence_batching { state { input_name: "%s" output_name: "%s" data_type: TYPE_FP32 dims: 1 } }'


@pytest.mark.parametrize("name", ["START__1", "y"])
def test_a_control_is_named_by_its_number_or_argument(name):
    assert mapping(("x",), more=START % name).inputs == {"x": 0, name: 1}


def test_a_control_without_a_number_is_refused():
    error = refusal(("x",), more=START % "START")
    assert (error.message, error.code) == (
        "input 'START' does not follow <name>__<index> naming convention.",
        Code.INTERNAL,
    )


def test_states_need_an_index_in_every_name():
    found = mapping(("IN__0",), ("OUT__0",), more=STATE % ("OLD__1", "NEW__1"))
    assert (found.inputs, found.outputs) == ({"IN__0": 0, "OLD__1": 1}, {"OUT__0": 0, "NEW__1": 1})
    text = "PyTorch model 'm' is using sequence batching with state but "
    assert refusal(("x",), ("OUT__0",), more=STATE % ("OLD__1", "NEW__1")).message == (
        text + "not all inputs and outputs follow the <name>__<index> naming convention. "
    )
    assert refusal(("IN__0",), ("OUT__0",), more=STATE % ("OLD", "NEW__1")).message == (
        text + "state 'OLD' does not follow the <name>__<index> naming convention. "
    )


def test_batch_inputs_follow_client_inputs():
    more = 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "count" source_input: "a" }'
    assert mapping(("a",), more=more).inputs == {"a": 0, "count": 1}
    assert mapping(("x",), more=more.replace("count", "y")).inputs == {"x": 0, "y": 1}
    assert mapping(("x",), more=more.replace("count", "COUNT__1")).inputs == {"x": 0, "COUNT__1": 1}
