"""Which execution providers a model gets on a device. Pure.

Options: https://onnxruntime.ai/docs/execution-providers, pages CUDA, TensorRT and OpenVINO.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_onnx.values import parse_bool, parse_int

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelOptimizationPolicy

CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
CPU = "CPUExecutionProvider"

Provider = tuple[str, dict[str, str]]

_PRECISIONS = {"FP16": "trt_fp16_enable", "BF16": "trt_bf16_enable", "INT8": "trt_int8_enable"}
# The TensorRT parameters that a configuration names otherwise than ONNX Runtime does.
_RENAMED = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}
_BOOLS = {
    "trt_int8_use_native_calibration_table", "trt_dla_enable", "trt_engine_cache_enable", "trt_dump_subgraphs",
    "trt_force_sequential_engine_build", "trt_context_memory_sharing_enable", "trt_layer_norm_fp32_fallback",
    "trt_timing_cache_enable", "trt_force_timing_cache", "trt_detailed_build_log", "trt_build_heuristics_enable",
    "trt_sparsity_enable", "trt_cuda_graph_enable", "trt_dump_ep_context_model",
}  # fmt: skip
_INTS = {
    "trt_max_workspace_size", "trt_max_partition_iterations", "trt_min_subgraph_size", "trt_dla_core",
    "trt_builder_optimization_level", "trt_auxiliary_streams", "trt_ep_context_embed_mode",
}  # fmt: skip
_TEXTS = {
    "trt_int8_calibration_table_name", "trt_engine_cache_path", "trt_engine_cache_prefix", "trt_timing_cache_path",
    "trt_tactic_sources", "trt_extra_plugin_lib_paths", "trt_profile_min_shapes", "trt_profile_max_shapes",
    "trt_profile_opt_shapes", "trt_ep_context_file_path",
}  # fmt: skip
_CUDA_BOOLS = {"do_copy_in_default_stream", "use_ep_level_unified_stream"}
_CONV_SEARCHES = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT")
_ARENA_STRATEGIES = ("kNextPowerOfTwo", "kSameAsRequested")
_REMEDIES = {
    CUDA: (
        "pip install 'tritonpy-backend-onnx[gpu]' and then pip install --force-reinstall --no-deps onnxruntime-gpu, which "
        "takes the place of the CPU package's files; or put the model on the CPU with instance_group [{ kind: KIND_CPU }]"
    ),
    TENSORRT: (
        "install onnxruntime-gpu as the README of tritonpy-backend-onnx says, and pip install tensorrt; or remove the "
        "accelerator 'tensorrt' from the configuration"
    ),
    OPENVINO: (
        "install onnxruntime-openvino in place of onnxruntime, or remove the accelerator 'openvino' from the configuration"
    ),
}


class Device(NamedTuple):
    """Where a session runs: kind `GPU` or `CPU` and, for a GPU, its number."""

    kind: str
    id: int


def providers_for(config: ModelConfig, parameters: Mapping[str, str], device: Device) -> list[Provider]:
    """Return the providers in order of preference, the CPU last; raises InvalidArgument for an unknown accelerator or value."""
    accelerators = config.optimization.execution_accelerators
    chosen: list[Provider] = []
    if device.kind == "GPU":
        cuda: dict[str, str] = {}
        for accelerator in accelerators.gpu_execution_accelerator:
            if accelerator.name == "tensorrt":
                chosen.append((TENSORRT, _tensorrt_options(accelerator.parameters, device.id)))
            elif accelerator.name == "cuda":
                cuda.update(_cuda_options(accelerator.parameters))
            else:
                raise _unknown(accelerator)
        chosen.append((CUDA, {**cuda, "device_id": str(device.id), **_cuda_parameters(parameters)}))
    for accelerator in accelerators.cpu_execution_accelerator:
        if accelerator.name != "openvino":
            raise _unknown(accelerator)
        chosen.append((OPENVINO, {"device_type": "CPU"}))
    return [*chosen, (CPU, {})]


def shares_session(providers: Collection[Provider]) -> bool:
    """Say whether all instances of a device may use one session.

    ONNX Runtime's sessions are safe for concurrent runs, and one session keeps one copy of the weights. TensorRT engines serialise their
    runs and a captured CUDA graph has one set of buffers: there each instance gets its own.
    """
    return not any(name == TENSORRT or parse_bool(options.get("enable_cuda_graph", "0")) for name, options in providers)


def check_available(model: str, providers: Collection[Provider], available: Collection[str]) -> None:
    """Raise Unavailable for the first provider that is not among `available`, naming what to install."""
    for name, _ in providers:
        if name not in available:
            raise Unavailable(
                f"model '{model}' needs ONNX Runtime's {name}, the installed one has {', '.join(available)}: "
                f"{_REMEDIES[name]}"
            )


def _unknown(accelerator: ModelOptimizationPolicy.ExecutionAccelerators.Accelerator) -> InvalidArgument:
    return InvalidArgument(f"unknown Execution Accelerator '{accelerator.name}' is requested")


def _tensorrt_options(parameters: Mapping[str, str], device_id: int) -> dict[str, str]:
    options = {"device_id": str(device_id)}
    for key, value in parameters.items():
        if key == "precision_mode":
            options.update(_precision(value))
        else:
            name = _RENAMED.get(key, key)
            options[name] = _tensorrt_value(key, name, value)
    return options


def _precision(value: str) -> dict[str, str]:
    if value == "FP32":
        return {}
    if value not in _PRECISIONS:
        raise InvalidArgument(f"unsupported precision mode '{value}' is requested")
    return {_PRECISIONS[value]: "True"}


def _tensorrt_value(key: str, name: str, value: str) -> str:
    if name in _BOOLS:
        return str(parse_bool(value))  # the provider's Python options spell it True and False
    if name in _INTS:
        return str(parse_int(value))
    if name in _TEXTS:
        return value
    raise InvalidArgument(f"unknown parameter '{key}' is provided for TensorRT Execution Accelerator")


def _cuda_options(parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        key: str(int(parse_bool(value))) if key in _CUDA_BOOLS else value
        for key, value in sorted(parameters.items()) if value
    }  # fmt: skip


def _cuda_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Options of the CUDA provider given as parameters of the model: Triton's older place for them."""
    options = {key: parameters[key] for key in ("gpu_mem_limit", "do_copy_in_default_stream") if key in parameters}
    for key, names in (("cudnn_conv_algo_search", _CONV_SEARCHES), ("arena_extend_strategy", _ARENA_STRATEGIES)):
        if key in parameters:
            number = parse_int(parameters[key])
            if not 0 <= number < len(names):
                raise InvalidArgument(f"unsupported {key} value '{number}' is requested")
            options[key] = names[number]
    return options
