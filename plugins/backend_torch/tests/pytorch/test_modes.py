from __future__ import annotations

import pytest
import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.pytorch import modes
from tritonpy_backend_torch.pytorch.modes import execution_mode
from tritonpy_backend_torch.settings import model_settings


def mode(device="cpu", **parameters):
    return execution_mode(model_settings(parameters), device)


def test_without_parameters_only_inference_mode_is_set():
    with mode()():
        assert torch.is_inference_mode_enabled()
        assert not torch.is_autocast_enabled("cpu")
    assert not torch.is_inference_mode_enabled()


def test_without_inference_mode_there_are_no_gradients_either():
    with mode(INFERENCE_MODE="0")():
        assert not torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_mixed_precision_applies_only_to_the_execution(precision, dtype):
    with mode(precision=precision)():
        assert torch.is_inference_mode_enabled()
        assert (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")) == (True, dtype)
    assert not torch.is_autocast_enabled("cpu")


def test_process_switches_are_set_as_configured(monkeypatch):
    calls = {}
    switches = {
        "_set_graph_executor_optimize": "DISABLE_OPTIMIZED_EXECUTION", "_jit_set_profiling_mode": "ENABLE_JIT_PROFILING",
        "_jit_set_profiling_executor": "ENABLE_JIT_EXECUTOR", "_jit_set_texpr_fuser_enabled": "ENABLE_TENSOR_FUSER",
    }  # fmt: skip
    for switch in (*switches, "_set_cudnn_enabled"):
        monkeypatch.setattr(
            torch._C, switch, lambda value, switch=switch: calls.update({switch: value})
        )
    entered = mode(**dict.fromkeys(switches.values(), "true"), DISABLE_CUDNN="true")
    assert calls == {}
    with entered():
        assert calls == {
            "_set_graph_executor_optimize": False,
            **dict.fromkeys(list(switches)[1:], True),
        }
    with mode("cuda", DISABLE_CUDNN="true")():
        assert calls["_set_cudnn_enabled"] is False
    with mode("cuda")():
        assert calls["_set_cudnn_enabled"] is True


def test_a_gpu_without_bfloat16_is_rejected(monkeypatch):
    monkeypatch.setattr(modes.torch.cuda, "is_bf16_supported", lambda: False)
    with pytest.raises(InvalidArgument, match="this GPU does not support precision bf16, use fp16"):
        mode("cuda", precision="bf16")
