"""Pure conversion of accelerator parameters to options of ONNX Runtime's TensorRT provider.

Option reference: https://onnxruntime.ai/docs/execution-providers/TensorRT-ExecutionProvider.html
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import InvalidArgument
from tritonpy.config import parameter_bool, parameter_bytes, parameter_choice, parameter_int

PRECISIONS = ("fp32", "fp16", "bf16", "int8")
_PRECISION_OPTIONS = {
    "FP16": "trt_fp16_enable",
    "BF16": "trt_bf16_enable",
    "INT8": "trt_int8_enable",
}
# Triton's parameter names that differ from ONNX Runtime's option names. Triton does not accept the
# latter.
_RENAMED = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}
_BOOLS = {
    "int8_use_native_calibration_table", "trt_dla_enable", "trt_engine_cache_enable",
    "trt_dump_subgraphs",
    "trt_force_sequential_engine_build", "trt_context_memory_sharing_enable",
    "trt_layer_norm_fp32_fallback",
    "trt_timing_cache_enable", "trt_force_timing_cache", "trt_detailed_build_log",
    "trt_build_heuristics_enable",
    "trt_sparsity_enable", "trt_cuda_graph_enable", "trt_dump_ep_context_model",
}  # fmt: skip
_INTS = {
    "trt_max_partition_iterations", "trt_min_subgraph_size", "trt_dla_core",
    "trt_builder_optimization_level",
    "trt_auxiliary_streams", "trt_ep_context_embed_mode",
}  # fmt: skip
_TEXTS = {
    "int8_calibration_table_name", "trt_engine_cache_path", "trt_engine_cache_prefix",
    "trt_timing_cache_path",
    "trt_tactic_sources", "trt_extra_plugin_lib_paths", "trt_profile_min_shapes",
    "trt_profile_max_shapes",
    "trt_profile_opt_shapes", "trt_ep_context_file_path",
}  # fmt: skip

TENSORRT_PATHS = (
    "int8_calibration_table_name",
    "trt_engine_cache_path",
    "trt_engine_cache_prefix",
    "trt_ep_context_file_path",
    "trt_extra_plugin_lib_paths",
    "trt_timing_cache_path",
)
"""Text parameters whose values are paths on the server."""


def configured_precision(parameters: Mapping[str, str]) -> str | None:
    """Return the model parameter `precision`, or None.

    Raises `InvalidArgument` for an unknown value.
    """
    value = parameters.get("precision")
    return None if value is None else parameter_choice("precision", value, PRECISIONS)


def tensorrt_options(
    parameters: Mapping[str, str], device_id: int, precision: str | None
) -> dict[str, str]:
    """Return the provider options for the accelerator's `parameters` and the model's `precision`.

    Raises `InvalidArgument` for an unknown parameter or value, or if both name different
    precisions.
    """
    options = {"device_id": str(device_id)}
    mode = parameters.get("precision_mode")
    if mode is not None and mode not in {"FP32", *_PRECISION_OPTIONS}:
        raise InvalidArgument(f"unsupported precision mode '{mode}' is requested")
    if None not in {mode, precision} and str(mode).lower() != precision:
        raise InvalidArgument(
            f"the accelerator's precision_mode '{mode}' contradicts the model's precision "
            f"'{precision}'"
        )
    chosen = mode or (precision or "").upper()
    if chosen in _PRECISION_OPTIONS:
        options[_PRECISION_OPTIONS[chosen]] = "True"
    for key, value in parameters.items():
        if key != "precision_mode":
            found = _value(key, value)
            if found:
                options[_RENAMED.get(key, key)] = found
    return options


def _value(key: str, value: str) -> str:
    if key in _BOOLS:
        return str(parameter_bool(key, value))  # the provider's Python options use True and False
    if key in _INTS:
        return str(parameter_int(key, value))
    if key == "max_workspace_size_bytes":
        return str(parameter_bytes(key, value))
    if key in _TEXTS:
        return value
    raise InvalidArgument(
        f"unknown parameter '{key}' is provided for TensorRT Execution Accelerator"
    )
