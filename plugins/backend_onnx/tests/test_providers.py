from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_onnx.providers import (
    CPU,
    CUDA,
    OPENVINO,
    TENSORRT,
    ProviderDevice,
    can_share_session,
    check_available,
    needs_open_lock,
    select_providers,
)
from tritonpy_protos.model_config_pb2 import ModelConfig

HOST, GPU = ProviderDevice("CPU", 0), ProviderDevice("GPU", 3)


def config(*accelerators):
    """Accelerators as (kind, name, parameters)."""
    result = ModelConfig(name="m")
    for kind, name, parameters in accelerators:
        field = getattr(
            result.optimization.execution_accelerators, f"{kind}_execution_accelerator"
        ).add(name=name)
        field.parameters.update(parameters)
    return result


def test_the_cpu_has_only_the_cpu_provider():
    assert select_providers(ModelConfig(), {}, HOST) == [(CPU, {})]


def test_a_gpu_has_cuda_on_its_device_before_the_cpu():
    assert select_providers(ModelConfig(), {}, GPU) == [(CUDA, {"device_id": "3"}), (CPU, {})]


def test_gpu_accelerators_do_not_concern_the_cpu():
    assert select_providers(config(("gpu", "tensorrt", {})), {}, HOST) == [(CPU, {})]


def test_parameters_of_cuda_come_from_both_places():
    found = select_providers(
        config(
            (
                "gpu",
                "cuda",
                {
                    "cudnn_conv_use_max_workspace": "0",
                    "use_ep_level_unified_stream": "True",
                    "gpu_mem_limit": "5",
                },
            )
        ),
        {
            "gpu_mem_limit": "7",
            "cudnn_conv_algo_search": "1",
            "arena_extend_strategy": "1",
            "do_copy_in_default_stream": "0",
            "other": "x",
        },
        GPU,
    )
    assert found[0] == (
        CUDA,
        {
            "cudnn_conv_use_max_workspace": "0", "use_ep_level_unified_stream": "1", "device_id": "3", "gpu_mem_limit": "7",
            "do_copy_in_default_stream": "0", "cudnn_conv_algo_search": "HEURISTIC", "arena_extend_strategy": "kSameAsRequested",
        },
    )  # fmt: skip


def test_tensorrt_comes_before_cuda_with_its_parameters_renamed():
    found = select_providers(
        config(("gpu", "tensorrt", {
            "precision_mode": "FP16", "max_workspace_size_bytes": "1024", "trt_engine_cache_enable": "1",
            "trt_engine_cache_path": "/cache", "int8_use_native_calibration_table": "off",
        })), {}, GPU,
    )  # fmt: skip
    assert [name for name, _ in found] == [TENSORRT, CUDA, CPU]
    assert found[0][1] == {
        "device_id": "3", "trt_fp16_enable": "True", "trt_max_workspace_size": "1024", "trt_engine_cache_enable": "True",
        "trt_engine_cache_path": "/cache", "trt_int8_use_native_calibration_table": "False",
    }  # fmt: skip


def test_single_precision_is_the_default_of_tensorrt():
    assert select_providers(config(("gpu", "tensorrt", {"precision_mode": "FP32"})), {}, GPU)[
        0
    ] == (
        TENSORRT,
        {"device_id": "3"},
    )


def test_openvino_serves_the_cpu():
    assert select_providers(config(("cpu", "openvino", {})), {}, HOST) == [
        (OPENVINO, {"device_type": "CPU"}),
        (CPU, {}),
    ]


@pytest.mark.parametrize(
    ("accelerator", "parameters", "text"),
    [
        (("gpu", "tpu", {}), {}, "unknown Execution Accelerator 'tpu' is requested"),
        (("cpu", "cuda", {}), {}, "unknown Execution Accelerator 'cuda' is requested"),
        (
            ("gpu", "tensorrt", {"precision_mode": "FP8"}),
            {},
            "unsupported precision mode 'FP8' is requested",
        ),
        (
            ("gpu", "tensorrt", {"speed": "1"}),
            {},
            "unknown parameter 'speed' is provided for TensorRT Execution Accelerator",
        ),
        (
            ("gpu", "tensorrt", {"trt_dla_core": "x"}),
            {},
            "parameter 'trt_dla_core': failed to convert 'x' to integral number (such as 4)",
        ),
        (
            ("gpu", "cuda", {}),
            {"cudnn_conv_algo_search": "3"},
            "unsupported cudnn_conv_algo_search value '3' is requested",
        ),
        (
            ("gpu", "cuda", {}),
            {"arena_extend_strategy": "-1"},
            "unsupported arena_extend_strategy value '-1' is requested",
        ),
    ],
)
def test_unknown_accelerators_are_rejected_with_tritons_text(accelerator, parameters, text):
    with pytest.raises(InvalidArgument) as caught:
        select_providers(config(accelerator), parameters, GPU)
    assert caught.value.message == text


@pytest.mark.parametrize(
    ("provider", "remedy"),
    [
        (CUDA, "tritonpy-backend-onnx\\[gpu\\]"),
        (TENSORRT, "pip install tensorrt"),
        (OPENVINO, "install onnxruntime-openvino"),
    ],
)
def test_a_missing_provider_is_named_with_installation_instructions(provider, remedy):
    with pytest.raises(Unavailable, match=remedy) as caught:
        check_available("m", [(provider, {}), (CPU, {})], [CPU])
    assert provider in caught.value.message
    assert "'m'" in caught.value.message


def test_an_available_provider_is_accepted():
    check_available("m", [(CUDA, {}), (CPU, {})], [CPU, CUDA])


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("", True),
        ('gpu_execution_accelerator { name: "cuda" }', True),
        (
            'gpu_execution_accelerator { name: "cuda" parameters { key: "enable_cuda_graph" value: "1" } }',
            False,
        ),
        ('gpu_execution_accelerator { name: "tensorrt" }', False),
    ],
)
def test_a_session_is_shared_if_its_provider_runs_concurrently(text, shared):
    parsed = text_format.Parse(
        f"optimization {{ execution_accelerators {{ {text} }} }}", ModelConfig()
    )
    assert can_share_session(select_providers(parsed, {}, GPU)) is shared


@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8"])
def test_only_tensorrt_supports_lower_precision(precision):
    wanted = {"precision": precision}
    found = select_providers(config(("gpu", "tensorrt", {})), wanted, GPU)
    assert found[0] == (TENSORRT, {"device_id": "3", f"trt_{precision}_enable": "True"})
    for accelerators, device in (
        (config(("gpu", "tensorrt", {})), HOST),
        (config(), GPU),
        (config(("cpu", "openvino", {})), HOST),
    ):
        with pytest.raises(
            InvalidArgument,
            match=f"precision '{precision}' needs a GPU and the accelerator 'tensorrt'",
        ):
            select_providers(accelerators, wanted, device)


def test_all_providers_support_single_precision():
    for device in (HOST, GPU):
        assert select_providers(config(), {"precision": "fp32"}, device) == select_providers(
            config(), {}, device
        )


def test_an_unknown_precision_is_rejected_on_every_device():
    with pytest.raises(InvalidArgument, match="parameter 'precision' is 'fp8'"):
        select_providers(config(), {"precision": "fp8"}, HOST)


@pytest.mark.parametrize(
    ("accelerator", "alone"),
    [
        (("gpu", "tensorrt", {}), False),
        (("gpu", "tensorrt", {"trt_engine_cache_enable": "0"}), False),
        (
            (
                "gpu",
                "tensorrt",
                {"trt_engine_cache_enable": "1", "trt_engine_cache_path": "/cache"},
            ),
            True,
        ),
        (("gpu", "cuda", {}), False),
        (("cpu", "openvino", {}), True),
    ],
)
def test_sessions_with_a_shared_engine_cache_are_opened_sequentially(accelerator, alone):
    assert needs_open_lock(select_providers(config(accelerator), {}, GPU)) is alone


def test_an_older_parameter_wins_over_the_accelerators_and_the_device_over_both():
    found = select_providers(
        config(("gpu", "cuda", {"gpu_mem_limit": "5", "device_id": "0", "empty": ""})),
        {"gpu_mem_limit": "7"},
        GPU,
    )
    assert found[0] == (CUDA, {"gpu_mem_limit": "7", "device_id": "3"})


def test_memory_limit_bytes_limits_the_gpu_memory_of_a_model():
    found = select_providers(config(), {"memory_limit_bytes": "1048576", "gpu_mem_limit": "7"}, GPU)
    assert found[0] == (CUDA, {"gpu_mem_limit": "1048576", "device_id": "3"})


@pytest.mark.parametrize(
    ("limit", "why"),
    [("0", "must be a number of bytes"), ("much", "failed to convert"), ("-1", "failed")],
)
def test_a_memory_limit_is_a_number_of_bytes(limit, why):
    with pytest.raises(InvalidArgument, match=why):
        select_providers(config(), {"memory_limit_bytes": limit}, GPU)


def test_a_memory_limit_without_a_gpu_is_rejected():
    with pytest.raises(InvalidArgument, match="limits GPU memory, but the model runs on no GPU"):
        select_providers(config(), {"memory_limit_bytes": "1"}, HOST)
    both = config()
    both.instance_group.add(kind="KIND_CPU")
    both.instance_group.add(kind="KIND_GPU")
    assert select_providers(both, {"memory_limit_bytes": "1"}, HOST) == [(CPU, {})]
