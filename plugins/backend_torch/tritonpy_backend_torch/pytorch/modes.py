"""PyTorch modes for an execution: inference mode, autocast and TorchScript switches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.settings import ModelSettings

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
Mode = Callable[[], AbstractContextManager[Any]]


def execution_mode(settings: ModelSettings, device_type: str) -> Mode:
    """Return a function that creates the context of one execution.

    Raises `InvalidArgument` if devices of `device_type` do not support the precision.
    """
    gradients: Mode = torch.inference_mode if settings.inference_mode else torch.no_grad
    switches = _process_switches(settings, device_type)
    dtype = _AUTOCAST.get(settings.precision)
    if dtype is None and not switches:
        return gradients
    if dtype is not None:
        _check_precision(settings.precision, device_type)
    return partial(_enter_mode, gradients, switches, dtype, device_type)


def _enter_mode(
    gradients: Mode, switches: list[Callable[[], Any]], dtype: Any, device_type: str
) -> ExitStack:
    for switch in switches:
        switch()
    stack = ExitStack()
    stack.enter_context(gradients())
    if dtype is not None:
        stack.enter_context(torch.autocast(device_type, dtype))
    return stack


def _process_switches(settings: ModelSettings, device_type: str) -> list[Callable[[], Any]]:
    """Return functions that set the process-wide switches of the model.

    The switches are not reset; every model with such settings sets them before it runs.
    """
    wanted = [
        (
            torch._C._set_graph_executor_optimize,
            False if not settings.optimized_execution else None,
        ),
        (torch._C._jit_set_profiling_mode, settings.jit_profiling),
        (torch._C._jit_set_profiling_executor, settings.jit_executor),
        (torch._C._jit_set_texpr_fuser_enabled, settings.tensor_fuser),
        (torch._C._set_cudnn_enabled, settings.cudnn if device_type == "cuda" else None),
    ]
    return [partial(switch, value) for switch, value in wanted if value is not None]


def _check_precision(precision: str, device_type: str) -> None:
    if device_type == "cuda" and precision == "bf16" and not torch.cuda.is_bf16_supported():
        raise InvalidArgument("this GPU does not support precision bf16, use fp16")
