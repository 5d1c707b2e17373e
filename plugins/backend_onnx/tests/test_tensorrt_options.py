from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_onnx.tensorrt_options import (
    PRECISIONS,
    configured_precision,
    tensorrt_options,
)

BOOLS = {
    "trt_dla_enable", "trt_engine_cache_enable", "trt_dump_subgraphs", "trt_force_sequential_engine_build",
    "trt_context_memory_sharing_enable", "trt_layer_norm_fp32_fallback", "trt_timing_cache_enable", "trt_force_timing_cache",
    "trt_detailed_build_log", "trt_build_heuristics_enable", "trt_sparsity_enable", "trt_cuda_graph_enable", "trt_dump_ep_context_model",
}  # fmt: skip
INTS = {
    "trt_max_partition_iterations", "trt_min_subgraph_size", "trt_dla_core", "trt_builder_optimization_level", "trt_auxiliary_streams",
    "trt_ep_context_embed_mode",
}  # fmt: skip
TEXTS = {
    "trt_engine_cache_path", "trt_engine_cache_prefix", "trt_timing_cache_path", "trt_tactic_sources", "trt_extra_plugin_lib_paths",
    "trt_profile_min_shapes", "trt_profile_max_shapes", "trt_profile_opt_shapes", "trt_ep_context_file_path",
}  # fmt: skip


def options(precision=None, **parameters):
    found = tensorrt_options(parameters, 3, precision)
    assert found.pop("device_id") == "3"
    return found


def refusal(precision=None, **parameters):
    with pytest.raises(InvalidArgument) as caught:
        options(precision, **parameters)
    return caught.value.message


@pytest.mark.parametrize("key", sorted(BOOLS))
def test_switches_are_spelled_as_the_provider_does(key):
    assert [options(**{key: value}) for value in ("1", "true", "On", "0", "off")] == [
        {key: "True"}, {key: "True"}, {key: "True"}, {key: "False"}, {key: "False"},
    ]  # fmt: skip
    assert (
        refusal(**{key: "maybe"})
        == f"parameter '{key}': failed to convert 'maybe' to boolean (true, on, 1, false, off, 0)"
    )


@pytest.mark.parametrize("key", sorted(INTS))
def test_integers_are_validated(key):
    assert options(**{key: "-1"}) == {key: "-1"}
    assert (
        refusal(**{key: "x"})
        == f"parameter '{key}': failed to convert 'x' to integral number (such as 4)"
    )


@pytest.mark.parametrize("key", sorted(TEXTS))
def test_nonempty_texts_are_passed_unchanged(key):
    assert options(**{key: "a b"}) == {key: "a b"}
    assert options(**{key: ""}) == {}


def test_tritons_parameter_names_are_translated():
    assert options(max_workspace_size_bytes="1024", int8_calibration_table_name="t", int8_use_native_calibration_table="1") == {
        "trt_max_workspace_size": "1024", "trt_int8_calibration_table_name": "t", "trt_int8_use_native_calibration_table": "True",
    }  # fmt: skip
    assert "failed to convert '-1' to unsigned long long integral number" in refusal(
        max_workspace_size_bytes="-1"
    )


@pytest.mark.parametrize("key", ["speed", "device_id", "trt_fp16_enable", "trt_max_workspace_size"])
def test_parameters_that_triton_does_not_know_are_refused(key):
    assert (
        refusal(**{key: "1"})
        == f"unknown parameter '{key}' is provided for TensorRT Execution Accelerator"
    )


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("FP32", {}),
        ("FP16", {"trt_fp16_enable": "True"}),
        ("BF16", {"trt_bf16_enable": "True"}),
        ("INT8", {"trt_int8_enable": "True"}),
    ],
)
def test_a_precision_may_be_set_in_either_or_both_places(mode, found):
    precision = mode.lower()
    assert (
        options(precision_mode=mode)
        == options(precision)
        == options(precision, precision_mode=mode)
        == found
    )


def test_precisions_that_contradict_each_other_are_refused():
    assert (
        refusal("fp16", precision_mode="INT8")
        == "the accelerator's precision_mode 'INT8' contradicts the model's precision 'fp16'"
    )
    assert refusal(precision_mode="FP8") == "unsupported precision mode 'FP8' is requested"
    assert refusal("fp16", precision_mode="FP8") == "unsupported precision mode 'FP8' is requested"


def test_an_unknown_model_precision_is_rejected():
    assert configured_precision({}) is None
    assert [configured_precision({"precision": each.upper()}) for each in PRECISIONS] == list(
        PRECISIONS
    )
    with pytest.raises(
        InvalidArgument,
        match="parameter 'precision' is 'fp4', it must be one of fp32, fp16, bf16, int8",
    ):
        configured_precision({"precision": "fp4"})
