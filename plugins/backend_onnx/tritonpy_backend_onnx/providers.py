"""Pure selection of the execution providers for a model on a device.

Provider options: https://onnxruntime.ai/docs/execution-providers, pages CUDA, TensorRT and
OpenVINO.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tritonpy import InvalidArgument, Unavailable
from tritonpy.config import parameter_bool, parameter_bytes, parameter_int
from tritonpy.plugins import install_command
from tritonpy_backend_onnx.tensorrt_options import configured_precision, tensorrt_options

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelOptimizationPolicy

CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
CPU = "CPUExecutionProvider"

MEMORY_LIMIT = "memory_limit_bytes"  # parameter name shared by all backends

Provider = tuple[str, dict[str, str]]

_CUDA_BOOLS = {"do_copy_in_default_stream", "use_ep_level_unified_stream"}
_CONV_SEARCHES = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT")
_ARENA_STRATEGIES = ("kNextPowerOfTwo", "kSameAsRequested")
_INSTALL_HINTS = {
    CUDA: (
        "{gpu_extra} and then pip install --force-reinstall --no-deps onnxruntime-gpu, which "
        "replaces the CPU package's files; or run the model on the CPU with instance_group [{{ "
        "kind: KIND_CPU }}]"
    ),
    TENSORRT: (
        "install onnxruntime-gpu as described in the README of tritonpy-backend-onnx, "
        "and pip install tensorrt; or remove the "
        "accelerator 'tensorrt' from the configuration"
    ),
    OPENVINO: (
        "install onnxruntime-openvino instead of onnxruntime, or remove the accelerator "
        "'openvino' from the configuration"
    ),
}


class ProviderDevice(NamedTuple):
    """Device of a session: kind `GPU` or `CPU`, and the index of the GPU."""

    kind: str
    id: int


def select_providers(
    config: ModelConfig, parameters: Mapping[str, str], device: ProviderDevice
) -> list[Provider]:
    """Return the providers in order of preference, the CPU last.

    Every value of the model parameter `precision` except fp32 needs TensorRT. Raises
    `InvalidArgument` for an unknown accelerator or an invalid value.
    """
    accelerators = config.optimization.execution_accelerators
    precision = configured_precision(parameters)
    chosen: list[Provider] = []
    if device.kind == "GPU":
        cuda: dict[str, str] = {}
        for accelerator in accelerators.gpu_execution_accelerator:
            if accelerator.name == "tensorrt":
                chosen.append(
                    (TENSORRT, tensorrt_options(accelerator.parameters, device.id, precision))
                )
            elif accelerator.name == "cuda":
                cuda.update(_cuda_options(accelerator.parameters))
            else:
                raise _unknown_accelerator(accelerator)
        chosen.append((CUDA, {**cuda, "device_id": str(device.id), **_cuda_parameters(parameters)}))
    elif MEMORY_LIMIT in parameters and all(
        group.kind != group.KIND_GPU for group in config.instance_group
    ):
        raise InvalidArgument(
            f"parameter '{MEMORY_LIMIT}' limits GPU memory, but the model runs on no GPU: "
            "ONNX Runtime cannot limit host memory"
        )
    if precision not in {None, "fp32"} and all(name != TENSORRT for name, _ in chosen):
        raise InvalidArgument(
            f"precision '{precision}' needs a GPU and the accelerator 'tensorrt': "
            "other providers of ONNX Runtime compute in the "
            "data types that the model was exported with"
        )
    for accelerator in accelerators.cpu_execution_accelerator:
        if accelerator.name != "openvino":
            raise _unknown_accelerator(accelerator)
        chosen.append((OPENVINO, {"device_type": "CPU"}))
    return [*chosen, (CPU, {})]


def can_share_session(providers: Collection[Provider]) -> bool:
    """Return whether all instances on a device may share one session.

    ONNX Runtime sessions support concurrent runs, and one session keeps one copy of the weights.
    TensorRT engines serialize their runs and a captured CUDA graph has one set of buffers, so they
    need a session per instance.
    """
    graphs = "enable_cuda_graph"
    return not any(
        name == TENSORRT or parameter_bool(graphs, options.get(graphs, "0"))
        for name, options in providers
    )


def needs_open_lock(providers: Collection[Provider]) -> bool:
    """Return whether sessions must be created one at a time.

    OpenVINO requires it. With TensorRT's engine cache, it lets the next session reuse the cached
    engine.
    """
    return any(
        name == OPENVINO or (name == TENSORRT and options.get("trt_engine_cache_enable") == "True")
        for name, options in providers
    )


def check_available(
    model: str, providers: Collection[Provider], available: Collection[str]
) -> None:
    """Raise `Unavailable`, with installation instructions, if a provider is not in `available`."""
    for name, _ in providers:
        if name not in available:
            raise Unavailable(
                f"model '{model}' needs ONNX Runtime's {name}, but the installed package has "
                f"{', '.join(available)}: "
                f"{_INSTALL_HINTS[name].format(gpu_extra=install_command('tritonpy-backend-onnx[gpu]'))}"
            )


def _unknown_accelerator(
    accelerator: ModelOptimizationPolicy.ExecutionAccelerators.Accelerator,
) -> InvalidArgument:
    return InvalidArgument(f"unknown Execution Accelerator '{accelerator.name}' is requested")


def _cuda_options(parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        key: str(int(parameter_bool(key, value))) if key in _CUDA_BOOLS else value
        for key, value in sorted(parameters.items()) if value
    }  # fmt: skip


def _cuda_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the CUDA provider's options from model parameters, Triton's older place for them."""
    options = {
        key: parameters[key]
        for key in ("gpu_mem_limit", "do_copy_in_default_stream")
        if key in parameters
    }
    if MEMORY_LIMIT in parameters:
        options["gpu_mem_limit"] = str(
            parameter_bytes(MEMORY_LIMIT, parameters[MEMORY_LIMIT], least=1)
        )
    for key, names in (
        ("cudnn_conv_algo_search", _CONV_SEARCHES),
        ("arena_extend_strategy", _ARENA_STRATEGIES),
    ):
        if key in parameters:
            number = parameter_int(key, parameters[key])
            if not 0 <= number < len(names):
                raise InvalidArgument(f"unsupported {key} value '{number}' is requested")
            options[key] = names[number]
    return options
