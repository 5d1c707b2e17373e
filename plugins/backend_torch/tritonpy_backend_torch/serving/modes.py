"""The state of PyTorch in which a model runs: inference mode, automatic mixed precision, the switches of TorchScript."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.settings import TorchSettings

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
Mode = Callable[[], AbstractContextManager[Any]]


def mode_of(settings: TorchSettings, device_type: str) -> Mode:
    """Return what makes the context for one execution on a device of `device_type`; raises InvalidArgument for a precision that it lacks."""
    gradients: Mode = torch.inference_mode if settings.inference_mode else torch.no_grad
    switches = _switches(settings, device_type)
    dtype = _AUTOCAST.get(settings.precision)
    if dtype is None and not switches:
        return gradients
    if dtype is not None:
        _check_precision(settings.precision, device_type)
    return partial(_entered, gradients, switches, dtype, device_type)


def _entered(gradients: Mode, switches: list[Callable[[], Any]], dtype: Any, device_type: str) -> ExitStack:
    for switch in switches:
        switch()
    stack = ExitStack()
    stack.enter_context(gradients())
    if dtype is not None:
        stack.enter_context(torch.autocast(device_type, dtype))
    return stack


def _switches(settings: TorchSettings, device_type: str) -> list[Callable[[], Any]]:
    """Return what sets the process's switches as the model wants them; they are not put back, every model that cares sets them."""
    wanted = [
        (torch._C._set_graph_executor_optimize, False if not settings.optimized_execution else None),
        (torch._C._jit_set_profiling_mode, settings.jit_profiling),
        (torch._C._jit_set_profiling_executor, settings.jit_executor),
        (torch._C._jit_set_texpr_fuser_enabled, settings.tensor_fuser),
        (torch._C._set_cudnn_enabled, settings.cudnn if device_type == "cuda" else None),
    ]
    return [partial(switch, value) for switch, value in wanted if value is not None]


def _check_precision(precision: str, device_type: str) -> None:
    if device_type == "cuda" and precision == "bf16" and not torch.cuda.is_bf16_supported():
        raise InvalidArgument("precision bf16 is nothing that this GPU can do, fp16 is")
