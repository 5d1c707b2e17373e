"""Which execution providers a model gets on a device. Pure.

Options: https://onnxruntime.ai/docs/execution-providers, pages CUDA, TensorRT and OpenVINO.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tritonpy import InvalidArgument, Unavailable, install_command, parameter_bool, parameter_bytes, parameter_int
from tritonpy_backend_onnx.tensorrt_options import tensorrt_options, wanted_precision

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelOptimizationPolicy

CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
CPU = "CPUExecutionProvider"

MEMORY_LIMIT = "memory_limit_bytes"  # the parameter that all backends have for it

Provider = tuple[str, dict[str, str]]

_CUDA_BOOLS = {"do_copy_in_default_stream", "use_ep_level_unified_stream"}
_CONV_SEARCHES = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT")
_ARENA_STRATEGIES = ("kNextPowerOfTwo", "kSameAsRequested")
_REMEDIES = {
    CUDA: (
        "{gpu_extra} and then pip install --force-reinstall --no-deps onnxruntime-gpu, which "
        "takes the place of the CPU package's files; or put the model on the CPU with instance_group [{{ kind: KIND_CPU }}]"
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
    """Return the providers in order of preference, the CPU last; raises InvalidArgument for an unknown accelerator or value.

    Of the precisions that the model's parameter `precision` may name, all but fp32 are TensorRT's.
    """
    accelerators = config.optimization.execution_accelerators
    precision = wanted_precision(parameters)
    chosen: list[Provider] = []
    if device.kind == "GPU":
        cuda: dict[str, str] = {}
        for accelerator in accelerators.gpu_execution_accelerator:
            if accelerator.name == "tensorrt":
                chosen.append((TENSORRT, tensorrt_options(accelerator.parameters, device.id, precision)))
            elif accelerator.name == "cuda":
                cuda.update(_cuda_options(accelerator.parameters))
            else:
                raise _unknown(accelerator)
        chosen.append((CUDA, {**cuda, "device_id": str(device.id), **_cuda_parameters(parameters)}))
    elif MEMORY_LIMIT in parameters and all(group.kind != group.KIND_GPU for group in config.instance_group):
        raise InvalidArgument(
            f"parameter '{MEMORY_LIMIT}' bounds the memory of a GPU, and the model is on none: ONNX Runtime bounds none of the host's"
        )
    if precision not in {None, "fp32"} and all(name != TENSORRT for name, _ in chosen):
        raise InvalidArgument(
            f"precision '{precision}' needs a GPU and the accelerator 'tensorrt': everything else of ONNX Runtime computes in the "
            "types that the model was exported with"
        )
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
    graphs = "enable_cuda_graph"
    return not any(name == TENSORRT or parameter_bool(graphs, options.get(graphs, "0")) for name, options in providers)


def opens_alone(providers: Collection[Provider]) -> bool:
    """Say whether sessions are created one at a time: OpenVINO wants it, and where TensorRT caches its engines the next session finds them built."""
    return any(
        name == OPENVINO or (name == TENSORRT and options.get("trt_engine_cache_enable") == "True")
        for name, options in providers
    )


def check_available(model: str, providers: Collection[Provider], available: Collection[str]) -> None:
    """Raise Unavailable for the first provider that is not among `available`, naming what to install."""
    for name, _ in providers:
        if name not in available:
            raise Unavailable(
                f"model '{model}' needs ONNX Runtime's {name}, the installed one has {', '.join(available)}: "
                f"{_REMEDIES[name].format(gpu_extra=install_command('tritonpy-backend-onnx[gpu]'))}"
            )


def _unknown(accelerator: ModelOptimizationPolicy.ExecutionAccelerators.Accelerator) -> InvalidArgument:
    return InvalidArgument(f"unknown Execution Accelerator '{accelerator.name}' is requested")


def _cuda_options(parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        key: str(int(parameter_bool(key, value))) if key in _CUDA_BOOLS else value
        for key, value in sorted(parameters.items()) if value
    }  # fmt: skip


def _cuda_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Options of the CUDA provider given as parameters of the model: Triton's older place for them."""
    options = {key: parameters[key] for key in ("gpu_mem_limit", "do_copy_in_default_stream") if key in parameters}
    if MEMORY_LIMIT in parameters:
        options["gpu_mem_limit"] = str(parameter_bytes(MEMORY_LIMIT, parameters[MEMORY_LIMIT], least=1))
    for key, names in (("cudnn_conv_algo_search", _CONV_SEARCHES), ("arena_extend_strategy", _ARENA_STRATEGIES)):
        if key in parameters:
            number = parameter_int(key, parameters[key])
            if not 0 <= number < len(names):
                raise InvalidArgument(f"unsupported {key} value '{number}' is requested")
            options[key] = names[number]
    return options
