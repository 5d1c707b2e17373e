"""Pure mapping of the model parameter `precision` to TensorFlow's mixed precision."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument, Unsupported
from tritonpy.config import parameter_choice

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

PARAMETER = "precision"
PRECISIONS = ("fp32", "bf16", "fp16")
# Precision and device kind -> graph rewriter (a field of TensorFlow's `RewriterConfig`).
_REWRITERS: Mapping[tuple[str, str], str] = {
    ("bf16", "CPU"): "auto_mixed_precision_onednn_bfloat16",
    ("bf16", "MODEL"): "auto_mixed_precision_onednn_bfloat16",
    ("fp16", "CPU"): "auto_mixed_precision_cpu",
    ("fp16", "GPU"): "auto_mixed_precision",
    ("fp16", "MODEL"): "auto_mixed_precision",
}
# CPU flags that a rewriter requires, as named by Linux. Without them TensorFlow silently leaves the
# graph unchanged.
_REQUIRED_CPU_FLAGS = {
    "auto_mixed_precision_onednn_bfloat16": ("avx512f", "avx_ne_convert"),
    "auto_mixed_precision_cpu": ("avx512_fp16", "amx_fp16", "avx_ne_convert"),
}


def precision_rewriter(
    config: ModelConfig, parameters: Mapping[str, str], kind: str, cpu_flags: Container[str]
) -> str | None:
    """Return the rewriter for an instance on a device of `kind` (CPU, GPU, MODEL), or None.

    The parameter takes precedence over Triton's accelerator `auto_mixed_precision`, which means
    fp16 on GPUs. Raises `InvalidArgument` for an unknown precision or accelerator, `Unsupported`
    for a precision that the device does not support.
    """
    accelerators = list(_accelerators(config))
    precision = parameters.get(PARAMETER)
    if precision is None:
        precision = "fp16" if kind != "CPU" and "auto_mixed_precision" in accelerators else "fp32"
    precision = parameter_choice(PARAMETER, precision, PRECISIONS)
    if precision == "fp32":
        return None
    rewriter = _REWRITERS.get((precision, kind))
    needed = _REQUIRED_CPU_FLAGS.get(rewriter or "", ())
    if rewriter is None or (needed and not any(flag in cpu_flags for flag in needed)):
        reason = (
            f": it needs one of {', '.join(needed)}"
            if needed
            else ", TensorFlow supports fp16 there"
        )
        raise Unsupported(
            f"model '{config.name}': precision {precision} is not supported on this "
            f"{_DEVICES[kind]}{reason}"
        )
    return rewriter


_DEVICES = {"CPU": "processor", "MODEL": "processor", "GPU": "GPU"}


def _accelerators(config: ModelConfig) -> Iterator[str]:
    """Yield the names of the accelerators; raise `InvalidArgument` for unsupported ones."""
    accelerators = config.optimization.execution_accelerators
    if accelerators.cpu_execution_accelerator:
        raise InvalidArgument("CPU Execution Accelerator is not supported in TensorFlow backend")
    for accelerator in accelerators.gpu_execution_accelerator:
        name = accelerator.name
        if name == "tensorrt":
            raise InvalidArgument(
                f"model '{config.name}' uses TensorRT, which TensorFlow does not support since "
                "2.18: serve it as ONNX with the"
                " accelerator tensorrt, or as a TensorRT engine"
            )
        if name not in {"auto_mixed_precision", "gpu_io"}:
            raise InvalidArgument(f"unknown Execution Accelerator '{name}' is requested")
        yield name


@cache
def cpu_flags() -> frozenset[str]:
    """Return the CPU flags of this machine, or an empty set if Linux does not report them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())
