from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.model.request_check import MAX_INLINE_STRING_BYTES, RequestCheck
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types import (
    CallbackSink,
    InferRequest,
    OutputSpec,
    SequenceInfo,
    Tensor,
    encode_strings,
)
from tritonpy_types.errors import InvalidArgument

SINK = CallbackSink(lambda *_: None)
OUT = ' output { name: "OUT" data_type: TYPE_FP32 dims: -1 }'
BATCH = (
    'max_batch_size: 4 input [{ name: "A" data_type: TYPE_INT32 dims: 3 }, { name: "B" data_type: TYPE_INT32 dims: 3 }]'
    + OUT
)
FIXED = (
    'input [{ name: "A" data_type: TYPE_INT32 dims: 16 }, { name: "B" data_type: TYPE_INT32 dims: [-1, 4] }]'
    + OUT
)
TEXT = 'max_batch_size: 4 input { name: "S" data_type: TYPE_STRING dims: -1 }' + OUT


def check_of(text):
    return RequestCheck(text_format.Parse(text, ModelConfig()), "m")


def tensor(name, shape, size=None, datatype="INT32"):
    size = int(np.prod(shape)) * 4 if size is None else size
    return Tensor.from_buffer(name, datatype, shape, bytes(size))


def request(*tensors, **options):
    return InferRequest("m", {each.name: each for each in tensors}, SINK, **options)


def refusal(text, *tensors, **options):
    with pytest.raises(InvalidArgument) as caught:
        check_of(text).check(request(*tensors, **options))
    return caught.value.message


UNKNOWN = "[request id: <id_unknown>] "


def test_a_sound_request_gets_its_batch_size():
    checked = request(tensor("A", (3, 3)), tensor("B", (3, 3)))
    check_of(BATCH).check(checked)
    assert checked.batch_size == 3


def test_a_model_without_batches_counts_one():
    checked = request(tensor("A", (16,)), tensor("B", (5, 4)))
    check_of(FIXED).check(checked)
    assert checked.batch_size == 1


def test_a_model_without_inputs_takes_none():
    checked = request()
    check_of("max_batch_size: 4").check(checked)
    assert checked.batch_size == 1
    assert refusal("max_batch_size: 4", tensor("X", (1,))).startswith(
        UNKNOWN + "expected 0 inputs but got 1 inputs"
    )


A, B = tensor("A", (16,)), tensor("B", (1, 4))
REFUSALS = [
    (
        FIXED,
        [A],
        UNKNOWN
        + "expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['A'], but missing required input(s) ['B']. "
        "Please provide all required input(s).",
    ),
    (
        FIXED,
        [],
        UNKNOWN
        + "expected 2 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing required input(s) "
        "['A','B']. Please provide all required input(s).",
    ),
    (
        FIXED,
        [A, B, tensor("X", (1,))],
        UNKNOWN
        + "expected 2 inputs but got 3 inputs for model 'm'. Got input(s) ['A','B','X'], but missing required "
        "input(s) ]. Please provide all required input(s).",
    ),
    (FIXED, [A, tensor("X", (1,))], "unexpected inference input 'X' for model 'm'"),
    (
        FIXED,
        [tensor("A", (16,), datatype="FP32"), B],
        UNKNOWN + "inference input 'A' data-type is 'FP32', but model 'm' expects 'INT32'",
    ),
    (
        FIXED,
        [A, tensor("B", (-1, 4), 16)],
        UNKNOWN
        + "All input dimensions should be specified for input 'B' for model 'm', got [-1,4]",
    ),
    (
        FIXED,
        [tensor("A", (16,), 60), B],
        UNKNOWN + "input byte size mismatch for input 'A' for model 'm'. Expected 64, got 60",
    ),
    (FIXED, [A, tensor("B", (-2, 4), 16)], "tensor 'B' contains an invalid dimension [-2,4]"),
    (
        FIXED,
        [A, tensor("B", (1 << 62, 4), 16)],
        "byte size for tensor 'B' exceeds maximum size of 9223372036854775807",
    ),
    (
        BATCH,
        [tensor("A", (), 12), tensor("B", (1, 3))],
        UNKNOWN + "input 'A' has no shape but model requires batch dimension for 'm'",
    ),
    (
        BATCH,
        [tensor("A", (1, 3)), tensor("B", (2, 3))],
        UNKNOWN + "input 'B' batch size does not match other inputs for 'm'",
    ),
    (
        BATCH,
        [tensor("A", (0, 3)), tensor("B", (2, 3))],
        UNKNOWN + "input 'B' batch size does not match other inputs for 'm'",
    ),
    (
        BATCH,
        [tensor("A", (5, 3)), tensor("B", (5, 3))],
        UNKNOWN + "inference request batch-size must be <= 4 for 'm'",
    ),
    (
        BATCH,
        [tensor("A", (-5, 3), 12), tensor("B", (-5, 3), 12)],
        UNKNOWN + "inference request batch-size must be <= 4 for 'm'",
    ),
    (
        BATCH,
        [tensor("A", (5, 4)), tensor("B", (5, 3), 1)],
        UNKNOWN + "inference request batch-size must be <= 4 for 'm'",
    ),
    (
        BATCH,
        [tensor("A", (0, 3)), tensor("B", (0, 3))],
        UNKNOWN + "input byte size mismatch for input 'A' for model 'm'. Expected 12, got 0",
    ),
    (
        BATCH,
        [tensor("A", (0, 3), 12), tensor("B", (0, 3), 12)],
        UNKNOWN + "input byte size mismatch for input 'A' for model 'm'. Expected 0, got 12",
    ),
    (
        TEXT,
        [Tensor("S", "BYTES", (1, 3), encode_strings(["a", "bb"]))],
        UNKNOWN + "expected 3 string elements for inference input 'S' for model 'm', got 2",
    ),
    (
        TEXT,
        [tensor("S", (0, 2), 0, "BYTES")],
        UNKNOWN + "inference request batch-size must be >= 1 for 'm'",
    ),
]


@pytest.mark.parametrize(("config", "tensors", "expected"), REFUSALS)
def test_a_request_that_does_not_fit_is_refused_in_tritons_words(config, tensors, expected):
    assert refusal(config, *tensors) == expected


@pytest.mark.parametrize("position", [0, 1])
def test_the_error_does_not_depend_on_the_order_of_inputs(position):
    tensors = [tensor("A", (15,)), B]
    text = refusal(FIXED, *(tensors if position == 0 else tensors[::-1]))
    assert (
        text == UNKNOWN + "unexpected shape for input 'A' for model 'm'. Expected [16], got [15]. "
    )


def test_the_id_of_the_request_is_named():
    assert refusal(FIXED, A, id="r1").startswith("[request id: r1] expected 2 inputs")


def test_an_unknown_output_is_rejected_before_inputs_are_checked():
    outputs = {"NOPE": OutputSpec("NOPE")}
    for tensors in ([A, B], [A]):
        assert (
            refusal(FIXED, *tensors, outputs=outputs)
            == "unexpected inference output 'NOPE' for model 'm'"
        )


def test_an_empty_list_of_outputs_requests_all():
    for outputs in ({}, None):
        checked = request(A, B, outputs=outputs)
        check_of(FIXED).check(checked)
        assert checked.outputs is None
    wanted = {"OUT": OutputSpec("OUT")}
    checked = request(A, B, outputs=wanted)
    check_of(FIXED).check(checked)
    assert checked.outputs is wanted


OPTIONAL = FIXED.replace("dims: 16", "dims: 16 optional: true")


def test_an_optional_input_may_be_left_out():
    for tensors in ([A, B], [B]):
        check_of(OPTIONAL).check(request(*tensors))


def test_missing_required_inputs_are_named_if_others_are_optional():
    expected = (
        "expected number of inputs between 1 and 2 but got {} inputs for model 'm'. Got input(s) {}, but missing "
        "required input(s) ['B']. Please provide all required input(s)."
    )
    assert refusal(OPTIONAL) == UNKNOWN + expected.format(0, "[]")
    assert refusal(OPTIONAL, A) == UNKNOWN + expected.format(1, "['A']")


def test_a_model_whose_inputs_are_all_optional_takes_none():
    config = BATCH.replace("dims: 3", "dims: 3 optional: true")
    checked = request()
    check_of(config).check(checked)
    assert checked.batch_size == 1


@pytest.mark.parametrize(
    ("config", "requested", "given_to_model"),
    [
        ("", 7, 0),
        ("dynamic_batching {}", 7, 0),
        ("dynamic_batching { priority_levels: 3 default_priority_level: 2 }", 0, 2),
        ("dynamic_batching { priority_levels: 3 default_priority_level: 2 }", 4, 2),
        ("dynamic_batching { priority_levels: 3 default_priority_level: 2 }", 3, 3),
        ("dynamic_batching { priority_levels: 3 default_priority_level: 2 }", 1, 1),
        ("ensemble_scheduling {}", 7, 7),
        ("ensemble_scheduling {}", 0, 0),
    ],
)
def test_a_priority_that_does_not_exist_becomes_the_default(config, requested, given_to_model):
    checked = request(A, B, priority=requested)
    check_of(f"{FIXED} {config}").check(checked)
    assert checked.priority == given_to_model


def test_small_strings_are_checked_immediately():
    checked = request(Tensor("S", "BYTES", (2, 1), encode_strings(["a", "b"])))
    check_of(TEXT).check(checked)
    assert not checked.unchecked_strings
    assert checked.inputs["S"]._offsets is not None


def large(count, elements=2):
    data = encode_strings([b"x" * MAX_INLINE_STRING_BYTES] * elements)
    return request(Tensor("S", "BYTES", (1, count), data), id="7")


def test_large_strings_are_checked_later():
    check, checked = check_of(TEXT), large(2)
    check.check(checked)
    assert checked.unchecked_strings
    check.check_strings(checked)
    assert not checked.unchecked_strings


def test_large_strings_of_a_sequence_are_checked_immediately():
    check = check_of(TEXT + " sequence_batching { }")
    checked = large(2)
    check.check(checked)
    assert not checked.unchecked_strings
    with pytest.raises(InvalidArgument, match="string elements"):
        check.check(large(3))


def test_invalid_large_strings_are_rejected_by_the_deferred_check():
    check, checked = check_of(TEXT), large(3)
    check.check(checked)
    with pytest.raises(InvalidArgument) as caught:
        check.check_strings(checked)
    assert caught.value.message == (
        "[request id: 7] expected 3 string elements for inference input 'S' for model 'm', got 2"
    )


def test_reshaped_inputs_replace_those_of_the_request_and_not_those_of_the_caller():
    config = 'max_batch_size: 4 input { name: "A" data_type: TYPE_INT32 dims: 1 reshape {} }'
    given_by_caller = {"A": tensor("A", (2, 1))}
    checked = InferRequest("m", given_by_caller, SINK)
    check_of(config).check(checked)
    assert checked.inputs["A"].shape == (2,)
    assert given_by_caller["A"].shape == (2, 1)


def test_outputs_are_mapped_only_where_the_configuration_reshapes():
    assert not check_of(FIXED).outputs
    assert check_of('output { name: "A" data_type: TYPE_INT32 dims: 1 reshape {} }').outputs


def test_a_sequence_id_of_the_wrong_type_is_refused():
    control = 'control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }'
    text = refusal(
        f"{FIXED} sequence_batching {{ {control} }}", A, B, sequence=SequenceInfo("text")
    )
    assert (
        text
        == UNKNOWN
        + "sequence batching control 'ID' data-type is 'BYTES', but model 'm' expects 'UINT64'"
    )


def test_a_shape_tensor_is_not_batched():
    config = (
        'max_batch_size: 4 input [{ name: "A" data_type: TYPE_INT32 dims: 3 }, '
        '{ name: "B" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }]'
    )
    checked = request(tensor("A", (3, 3)), tensor("B", (2,)))
    check_of(config).check(checked)
    assert checked.batch_size == 3


CHECKS = [
    (check_of(BATCH), (3,), (3,)),
    (check_of(BATCH.replace("dims: 3 }]", "dims: -1 }]")), (3,), (-1,)),
]
SOUND = st.just(("", None))
FAULTS = st.one_of(
    st.tuples(st.just("shape"), st.lists(st.integers(-2, 6), max_size=3).map(tuple)),
    st.tuples(st.just("datatype"), st.sampled_from(["INT32", "FP32"])),
    st.tuples(st.just("size"), st.integers(-1, 1)),
    st.tuples(st.just("name"), st.sampled_from("ABX")),
)


def drawn(name, rows, fault, value):
    shape = value if fault == "shape" else (rows, 3)
    size = max(int(np.prod(shape)) * 4 + (value if fault == "size" else 0), 0)
    return tensor(
        value if fault == "name" else name, shape, size, value if fault == "datatype" else "INT32"
    )


@given(st.sampled_from(CHECKS), st.integers(0, 5), SOUND | FAULTS, SOUND | FAULTS)
def test_exactly_the_requests_that_fit_pass(case, rows, fault_of_a, fault_of_b):
    check, *dims = case
    tensors = {
        each.name: each for each in (drawn("A", rows, *fault_of_a), drawn("B", rows, *fault_of_b))
    }
    sizes = {each.shape[0] for each in tensors.values() if each.shape}
    sound = set(tensors) == {"A", "B"} and len(sizes) == 1 and 1 <= min(sizes) <= 4
    for name, wanted in zip("AB", dims, strict=True):
        found = tensors.get(name)
        sound = (
            sound
            and found is not None
            and found.datatype == "INT32"
            and len(found.shape) == 2
            and wanted[0] in (-1, found.shape[1])
            and found.shape[1] >= 0
            and found.data.nbytes == np.prod(found.shape) * 4
        )
    checked = InferRequest("m", tensors, SINK)
    if sound:
        check.check(checked)
        assert checked.batch_size == min(sizes)
    else:
        with pytest.raises(InvalidArgument):
            check.check(checked)
