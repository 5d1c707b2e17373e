from __future__ import annotations

import pytest

from tritonpy_backend_trt.config_inputs import ConfigInput, config_inputs, input_shapes

from .descriptions import config

SEQUENCE = """
sequence_batching {
  control_input {
    name: 'START' control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] }
  }
  control_input { name: 'READY' control { kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] } }
  control_input { name: 'END' control { kind: CONTROL_SEQUENCE_END bool_false_true: [false, true] } }
  control_input { name: 'ID' control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } }
  state { input_name: 'BEFORE' output_name: 'AFTER' data_type: TYPE_FP16 dims: [2, 3] }
}
"""


def test_config_inputs_include_those_added_by_the_server():
    found = list(
        config_inputs(
            config(
                "input { name: 'IN' data_type: TYPE_UINT8 dims: [4, 1] reshape { shape: 4 } }"
                + SEQUENCE
            )
        )
    )
    assert found == [
        ConfigInput("IN", "input", "UINT8", (4,)),
        ConfigInput("START", "control", "FP32", (1,)),
        ConfigInput("END", "control", "BOOL", (1,)),
        ConfigInput("READY", "control", "INT32", (1,)),
        ConfigInput("ID", "control", "INT64", (1,)),
        ConfigInput("BEFORE", "state", "FP16", (2, 3)),
    ]


def test_the_batch_dimension_comes_first():
    text = "input { name: 'IN' data_type: TYPE_FP32 dims: [-1, 2] }" + SEQUENCE
    assert input_shapes(config("max_batch_size: 8 " + text))["IN"] == (8, -1, 2)
    assert input_shapes(config(text))["BEFORE"] == (2, 3)
    assert input_shapes(config("max_batch_size: 8 " + text))["ID"] == (8, 1)


def test_a_ragged_input_has_one_dimension():
    text = "max_batch_size: 8 input { name: 'IN' data_type: TYPE_FP32 dims: [-1, 2] allow_ragged_batch: true }"
    assert input_shapes(config(text))["IN"] == (-1,)


@pytest.mark.parametrize(
    ("kind", "batched", "alone"),
    [
        ("BATCH_ELEMENT_COUNT", (-1,), (1,)),
        ("BATCH_ACCUMULATED_ELEMENT_COUNT", (-1,), (1,)),
        ("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", (-1,), (2,)),
        ("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", (-1,), (-1,)),
        ("BATCH_ITEM_SHAPE", (-1, 2), (1, 2)),
        ("BATCH_ITEM_SHAPE_FLATTEN", (-1,), (2,)),
    ],
)
def test_a_batch_input_has_rows_of_its_own(kind, batched, alone):
    text = (
        "input { name: 'IN' data_type: TYPE_FP32 dims: [-1, -1] } "
        f"batch_input {{ kind: {kind} target_name: 'ABOUT' data_type: TYPE_INT32 source_input: 'IN' }}"
    )
    assert input_shapes(config("max_batch_size: 4 " + text))["ABOUT"] == batched
    assert input_shapes(config(text))["ABOUT"] == alone
