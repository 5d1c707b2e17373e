from __future__ import annotations

import pytest

from tritonpy import TritonError
from tritonpy_backend_trt.config_check import check_config
from tritonpy_backend_trt.signature import Packing, Signature

from .descriptions import config, info

IN = "input { name: 'IN' data_type: TYPE_FP32 dims: 4 }"
OUT = "output { name: 'OUT' data_type: TYPE_FP32 dims: 4 }"
PLAIN = (info("IN", -1, 4), info("OUT", -1, 4, output=True))
BATCH = "max_batch_size: 8 "
SHAPE_IN = info("IN", 3, datatype="INT32", is_shape=True)
SHAPE_OUT = info("OUT", 3, datatype="INT64", is_shape=True, output=True)
ROWS = PLAIN[1]


def refusal(text, *infos):
    with pytest.raises(TritonError) as caught:
        accepted(text, *infos)
    return caught.value.message


def accepted(text, *infos):
    check_config(config(text), Signature({each.name: each for each in infos or PLAIN}, ()), "m_0")


def field(text, what="input", name="IN"):
    return f"{what} {{ name: '{name}' {text} }}"


@pytest.mark.parametrize(
    ("text", "infos"),
    [
        (BATCH + IN + OUT, PLAIN),
        (BATCH + field("data_type: TYPE_FP32 dims: -1") + OUT, PLAIN),
        (IN + OUT, (info("IN", 4), info("OUT", 4, output=True))),
        (
            BATCH + IN + field("data_type: TYPE_FP32 dims: 1 reshape { }", "output", "OUT"),
            (PLAIN[0], info("OUT", -1, output=True)),
        ),
        (
            BATCH + field("data_type: TYPE_INT32 dims: 2 is_shape_tensor: true") + OUT,
            (SHAPE_IN, ROWS),
        ),
        (
            field("data_type: TYPE_INT32 dims: 3 is_shape_tensor: true") + OUT,
            (SHAPE_IN, info("OUT", 4, output=True)),
        ),
        (
            BATCH
            + IN
            + field("data_type: TYPE_INT64 dims: 2 is_shape_tensor: true", "output", "OUT"),
            (PLAIN[0], SHAPE_OUT),
        ),
        (
            BATCH + field("data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true") + OUT,
            (info("IN", -1), ROWS),
        ),
        (
            BATCH + IN + OUT + " batch_output { target_name: 'OUT' source_input: 'IN' }",
            (PLAIN[0], info("OUT", -1, output=True)),
        ),
    ],
)
def test_a_matching_configuration_is_accepted(text, infos):
    accepted(text, *infos)


CONTROL = "sequence_batching { control_input { name: 'START' control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } } }"
STATE = "sequence_batching { state { input_name: 'BEFORE' output_name: 'AFTER' data_type: TYPE_FP32 dims: 4 } }"
STATES = (*PLAIN, info("BEFORE", -1, 4), info("AFTER", -1, 4, output=True))


def test_controls_and_states_are_inputs_of_the_engine():
    accepted(BATCH + IN + OUT + CONTROL, *PLAIN, info("START", -1, 1))
    accepted(BATCH + IN + OUT + STATE, *STATES)
    assert refusal(BATCH + IN + OUT + CONTROL) == "input 'START' not found for m_0"
    assert refusal(BATCH + IN + OUT + STATE, *STATES[:3]) == "output 'AFTER' not found for m_0"
    assert refusal(BATCH + IN + OUT + CONTROL, *PLAIN, info("START", -1, 2)) == (
        "unexpected shape [-1,2] for control input 'START' for model m: expects all dimensions (conditionally first) to be 1 but "
        "the model specified shape [-1,2]"
    )
    assert refusal(BATCH + IN + OUT + CONTROL, *PLAIN, info("START", 1, -1)) == (
        "unexpected shape [1,-1] for control input 'START' for model m: expects the first dimension to be -1 but the model "
        "specified 1"
    )


@pytest.mark.parametrize(
    ("text", "infos", "message"),
    [
        (
            BATCH + IN + field("data_type: TYPE_FP32 dims: 4", name="X") + OUT, PLAIN,
            "unable to load model 'm', configuration expects 2 inputs, model provides at most 1",
        ),
        (BATCH + field("data_type: TYPE_FP32 dims: 4", name="X") + OUT, PLAIN, "unexpected inference input 'X', allowed inputs are: IN"),
        (BATCH + IN, PLAIN, "expected configuration for output 'OUT' for m_0"),
        (BATCH + OUT, PLAIN, "expected configuration for input 'IN' for m_0"),
        (BATCH + IN + OUT + OUT, PLAIN, "output 'OUT'  has already appeared as an input or output for m_0"),
        (
            BATCH + field("data_type: TYPE_INT32 dims: 4") + OUT, PLAIN,
            "unexpected datatype TYPE_FP32 for inference input 'IN', expecting TYPE_INT32 for m_0",
        ),
        (
            BATCH + IN + field("data_type: TYPE_FP16 dims: 4", "output", "OUT"), PLAIN,
            "unexpected datatype TYPE_FP32 for inference output 'OUT', expecting TYPE_FP16 for m_0",
        ),
        (BATCH + field("data_type: TYPE_STRING dims: 4") + OUT, PLAIN, "unsupported datatype TYPE_STRING for input 'IN' for model 'm'"),
        (BATCH + field("dims: 4") + OUT, PLAIN, "unsupported datatype TYPE_INVALID for input 'IN' for model 'm'"),
        (
            BATCH + field("data_type: TYPE_FP32 dims: [4, 1]") + OUT, PLAIN,
            ("model 'm', tensor 'IN': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 3 "
            "dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making "
            "complete shape [-1,4,1])"),
        ),
        (
            IN + OUT, PLAIN,
            ("model 'm', tensor 'IN': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 1 "
            "dimensions (shape [4])"),
        ),
        (
            BATCH + IN + OUT, (info("IN"), ROWS),
            ("model 'm', tensor 'IN': for the model to support batching the shape should have at least 1 dimension; but shape "
            "expected by the model is []"),
        ),
        (
            BATCH + field("data_type: TYPE_INT32 dims: 2") + OUT, (SHAPE_IN, ROWS),
            "input 'IN' for model 'm' is a shape tensor but the model configuration doesn't mark it as a shape tensor.",
        ),
        (
            BATCH + field("data_type: TYPE_FP32 dims: 4 is_shape_tensor: true") + OUT, PLAIN,
            "input 'IN' for model 'm' is incorrectly marked as a shape tensor in the model configuration.",
        ),
        (
            BATCH + field("data_type: TYPE_INT32 dims: 3 is_shape_tensor: true") + OUT, (SHAPE_IN, ROWS),
            "unable to load model 'm_0', binding 'IN' shape expected by framework [3] doesn't match model configuration shape [3]",
        ),
        (
            BATCH + field("data_type: TYPE_INT32 dims: [2, 2] is_shape_tensor: true") + OUT,
            (info("IN", 3, 2, datatype="INT32", is_shape=True), ROWS),
            "unable to load model 'm_0', shape binding 'IN' can only be 0-d or 1-D tensor, got [3,2]",
        ),
        (
            BATCH + field("data_type: TYPE_FP32 dims: 2 is_shape_tensor: true") + OUT, (SHAPE_IN, ROWS),
            "unexpected datatype TYPE_FP32 in model configuration for shape input 'IN', expecting TYPE_INT32 or TYPE_INT64 for m_0",
        ),
        (
            BATCH + field("data_type: TYPE_INT64 dims: 2 is_shape_tensor: true") + OUT, (SHAPE_IN, ROWS),
            "unexpected datatype TYPE_INT32 in engine for shape input 'IN', expecting TYPE_INT64 for m_0",
        ),
        (
            BATCH + IN + field("data_type: TYPE_INT32 dims: 2 is_shape_tensor: true", "output", "OUT"), (PLAIN[0], SHAPE_OUT),
            "unexpected datatype 'TYPE_INT32 in model configuration for shape output 'OUT', expecting TYPE_INT64 for m_0",
        ),
        (
            BATCH + IN + OUT, (info("IN", -1, 4, packing=Packing(1, 4)), ROWS),
            ("input 'IN' for model 'm' uses a non-linear IO format, but 'is_non_linear_format_io' is incorrectly set to false in the "
            "model configuration."),
        ),
        (
            BATCH + field("data_type: TYPE_FP32 dims: 4 is_non_linear_format_io: true") + OUT, PLAIN,
            ("input 'IN' for model 'm' uses a linear IO format, but 'is_non_linear_format_io' is incorrectly set to true in the "
            "model configuration."),
        ),
        (
            BATCH + field("data_type: TYPE_FP32 dims: 4 is_non_linear_format_io: true") + OUT,
            (info("IN", -1, 4, packing=Packing(-1, 1)), ROWS),
            "unexpected vectorized dim is -1 for non-linear tensor 'IN' for m_0",
        ),
        (
            BATCH + field("data_type: TYPE_FP32 dims: 4 allow_ragged_batch: true") + OUT, (info("IN", -1), ROWS),
            ("model 'm', tensor 'IN': for the model to support ragged input, the engine shape is: [-1] while the model config shape "
            "is: [4]"),
        ),
        (
            BATCH + IN + field("data_type: TYPE_INT64 dims: 2 is_shape_tensor: true", "output", "OUT")
            + " batch_output { target_name: 'OUT' source_input: 'IN' }", (PLAIN[0], SHAPE_OUT),
            "batch output 'OUT' can not be shape binding",
        ),
    ],
)  # fmt: skip
def test_a_mismatch_is_rejected_with_tritons_text(text, infos, message):
    assert refusal(text, *infos).startswith(message)  # a correction may follow
