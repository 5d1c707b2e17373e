from __future__ import annotations

import logging

import pytest

from tritonpy import Internal, InvalidArgument, TritonError
from tritonpy_backend_trt.config_completion import complete_config
from tritonpy_backend_trt.signature import Packing, Profile, Range, Signature

from .descriptions import config, info

LOG = logging.LoggerAdapter(logging.getLogger("tritonpy.test"))
IN, OUT = info("IN", -1, 4), info("OUT", -1, 2, datatype="INT64", output=True)


def signature(*infos, profiles=None):
    infos = infos or (IN, OUT)
    return Signature({each.name: each for each in infos}, tuple(profiles or [profile(0, 8)]))


def profile(index, rows, name="IN"):
    return Profile(index, {name: Range((1, 4), (rows, 4), (rows, 4))}, {})


def complete(text="", found=None):
    return complete_config(config(text), found or signature(), LOG)


def test_a_configuration_is_completed_from_the_engine():
    assert (
        complete()
        == config("""
        max_batch_size: 8 dynamic_batching { }
        input { name: 'IN' data_type: TYPE_FP32 dims: 4 } output { name: 'OUT' data_type: TYPE_INT64 dims: 2 }""")
    )


def test_the_batch_size_is_the_largest_of_the_selected_profiles():
    found = signature(profiles=[profile(0, 8), profile(1, 32), profile(2, 16)])
    assert complete(found=found).max_batch_size == 8
    assert (
        complete(
            "instance_group { profile: ['0', '2'] } instance_group { profile: '1' }", found
        ).max_batch_size
        == 32
    )
    with pytest.raises(
        Internal,
        match=r"configuration specified invalid profile 3 \. Number of profiles supported by TensorRT engine: 3",
    ):
        complete("instance_group { profile: '3' }", found)


def test_a_smaller_batch_size_is_kept_and_a_larger_one_rejected():
    assert complete("max_batch_size: 4").max_batch_size == 4
    with pytest.raises(Internal) as caught:
        complete("max_batch_size: 9")
    assert caught.value.message == (
        "autofill failed for model 'm': configuration specified max-batch 9 but TensorRT engine only supports max-batch 8"
    )


def test_batches_of_one_and_a_chosen_scheduler_are_left_alone():
    assert (
        complete(found=signature(profiles=[profile(0, 1)])).WhichOneof("scheduling_choice") is None
    )
    assert complete("sequence_batching { }").WhichOneof("scheduling_choice") == "sequence_batching"


def test_dims_that_include_the_batch_disable_batching():
    text = "input { name: 'IN' data_type: TYPE_FP32 dims: [-1, 4] }"
    found = complete(text)
    assert (found.max_batch_size, list(found.output[0].dims)) == (0, [-1, 2])


def test_dims_that_contradict_each_other_are_refused():
    text = "input { name: 'IN' data_type: TYPE_FP32 dims: [-1, 4] } output { name: 'OUT' data_type: TYPE_INT64 dims: 2 }"
    with pytest.raises(Internal, match="model tensor configurations are contradicting each other"):
        complete(text)


def test_dims_that_hint_a_batch_need_an_engine_that_has_one():
    found = signature(
        info("IN", -1, 4),
        info("S"),
        OUT,
        profiles=[Profile(0, {"IN": profile(0, 8).shapes["IN"], "S": Range((), (), ())}, {})],
    )
    with pytest.raises(
        Internal,
        match="hints for dynamic batching but the underlying engine doesn't support batching",
    ):
        complete("input { name: 'IN' data_type: TYPE_FP32 dims: 4 }", found)


def test_a_tensor_with_only_a_name_is_completed():
    found = complete("input { name: 'IN' }")
    assert (found.input[0].data_type, list(found.input[0].dims), found.max_batch_size) == (
        11,
        [4],
        8,
    )


def test_configured_values_are_kept():
    found = complete("output { name: 'OUT' data_type: TYPE_INT64 dims: -1 label_filename: 'x' }")
    assert (list(found.output[0].dims), found.output[0].label_filename) == ([-1], "x")


def test_scalars_have_one_element():
    found = complete(
        found=signature(info("IN"), OUT, profiles=[Profile(0, {"IN": Range((), (), ())}, {})])
    )
    assert (
        found.max_batch_size,
        list(found.input[0].dims),
        found.input[0].HasField("reshape"),
    ) == (0, [1], True)


def test_batches_of_scalars_have_one_element():
    found = complete(found=signature(IN, info("OUT", -1, output=True)))
    assert (list(found.output[0].dims), found.output[0].HasField("reshape")) == ([1], True)


def test_shape_tensors_are_marked_and_their_batch_is_the_servers():
    size = info("SIZE", 3, datatype="INT32", is_shape=True)
    shapes = {"IN": profile(0, 8).shapes["IN"], "SIZE": Range((3,), (3,), (3,))}
    found = complete(
        found=signature(
            IN,
            size,
            OUT,
            profiles=[Profile(0, shapes, {"SIZE": Range((1, 1, 1), (2, 2, 2), (4, 9, 9))})],
        )
    )
    assert found.max_batch_size == 4
    assert (found.input[1].is_shape_tensor, list(found.input[1].dims)) == (True, [2])


def test_packed_tensors_are_marked():
    found = complete(found=signature(info("IN", -1, 4, packing=Packing(1, 4)), OUT))
    assert [each.is_non_linear_format_io for each in (*found.input, *found.output)] == [True, False]


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ("is_shape_tensor", "'IN' is incorrectly specified as a shape tensor."),
        (
            "is_non_linear_format_io",
            "'IN' uses a linear IO format, but 'is_non_linear_format_io' is incorrectly set to true in the model configuration.",
        ),
    ],
)
def test_tensor_flags_that_contradict_the_engine_are_rejected(mark, text):
    with pytest.raises(InvalidArgument) as caught:
        complete(f"input {{ name: 'IN' {mark}: true }}")
    assert caught.value.message == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input { name: 'X' }", "unexpected inference input 'X', allowed inputs are: IN"),
        ("output { name: 'IN' }", "unexpected inference output 'IN', allowed outputs are: OUT"),
    ],
)
def test_unknown_tensors_are_rejected(text, message):
    with pytest.raises(TritonError) as caught:
        complete(text)
    assert caught.value.message == message


def test_tensors_of_the_server_are_not_client_tensors():
    names = ("IN", "START", "BEFORE", "COUNTS")
    infos = [info(name, -1, 4) for name in names] + [OUT, info("AFTER", -1, 4, output=True)]
    shapes = {name: profile(0, 8).shapes["IN"] for name in names}
    found = complete(
        """sequence_batching {
          control_input { name: 'START' control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } }
          state { input_name: 'BEFORE' output_name: 'AFTER' data_type: TYPE_FP32 dims: 4 }
        }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'COUNTS' data_type: TYPE_FP32 source_input: 'IN' }""",
        signature(*infos, profiles=[Profile(0, shapes, {})]),
    )
    assert [each.name for each in found.input] == ["IN"]
    assert [each.name for each in found.output] == ["OUT"]


def test_an_unsupported_type_is_not_completed():
    assert (
        complete(found=signature(info("IN", -1, 4, datatype="INVALID"), OUT)).input[0].data_type
        == 0
    )
