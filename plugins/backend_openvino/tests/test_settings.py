from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unsupported
from tritonpy_backend_openvino.settings import PRECISIONS, model_settings


def test_the_defaults_are_openvinos():
    found = model_settings({})
    assert (found.device, found.cpu_extension, found.precision, dict(found.properties)) == (
        "",
        "",
        "",
        {},
    )
    assert (found.fixed_batch, found.pad_batches, found.reshape_inputs) == (False, False, False)


def test_every_parameter_is_read():
    found = model_settings(
        {
            "PERFORMANCE_HINT": "Throughput", "CPU_EXTENSION_PATH": "/Ops.so", "INFERENCE_NUM_THREADS": "3",
            "COMPILATION_NUM_THREADS": "0", "HINT_BF16": "yes", "NUM_STREAMS": "2", "SKIP_OV_DYNAMIC_BATCHSIZE": "Yes",
            "ENABLE_BATCH_PADDING": "NO", "RESHAPE_IO_LAYERS": "YES", "TARGET_DEVICE": "auto:cpu", "unrelated": "x",
        }
    )  # fmt: skip
    assert (found.device, found.cpu_extension) == ("AUTO:CPU", "/Ops.so")
    assert (found.fixed_batch, found.pad_batches, found.reshape_inputs) == (True, False, True)
    assert dict(found.properties) == {
        "PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_NUM_THREADS": 3, "COMPILATION_NUM_THREADS": 0,
        "INFERENCE_PRECISION_HINT": "bf16", "NUM_STREAMS": 2,
    }  # fmt: skip


@pytest.mark.parametrize("value", ["auto", "NUMA"])
def test_streams_may_be_left_to_the_device(value):
    assert model_settings({"NUM_STREAMS": value}).properties == {"NUM_STREAMS": value.upper()}


@pytest.mark.parametrize("hint", ["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"])
def test_every_hint_of_triton_is_known(hint):
    assert model_settings({"PERFORMANCE_HINT": hint.lower()}).properties == {
        "PERFORMANCE_HINT": hint
    }


@pytest.mark.parametrize(("precision", "element"), PRECISIONS.items())
def test_a_precision_is_passed_to_the_device(precision, element):
    found = model_settings({"precision": precision.upper()})
    assert (found.precision, found.properties) == (precision, {"INFERENCE_PRECISION_HINT": element})


def test_a_precision_is_stricter_than_a_hint():
    assert model_settings({"HINT_BF16": "YES"}).precision == ""
    assert model_settings({"HINT_BF16": "YES", "precision": "bf16"}).precision == "bf16"


def test_padding_implies_a_fixed_batch_size():
    assert model_settings({"ENABLE_BATCH_PADDING": "YES"}).fixed_batch


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("INFERENCE_NUM_THREADS", "-1", "a non-negative number, got -1"),
        ("COMPILATION_NUM_THREADS", "Two", "a non-negative number, got two"),
        (
            "COMPILATION_NUM_THREADS",
            "\N{SUPERSCRIPT TWO}",
            "a non-negative number, got \N{SUPERSCRIPT TWO}",
        ),
        ("HINT_BF16", "NO", "YES, got no"),
        ("NUM_STREAMS", "-1", "either AUTO/NUMA/<int_value>, got -1"),
        ("PERFORMANCE_HINT", "FAST", "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT, got fast"),
        ("SKIP_OV_DYNAMIC_BATCHSIZE", "maybe", "YES or NO, got maybe"),
        ("ENABLE_BATCH_PADDING", "TRUE", "YES or NO, got true"),
        ("RESHAPE_IO_LAYERS", "1", "YES or NO, got 1"),
    ],
)
def test_an_invalid_value_is_rejected_with_the_valid_ones(key, value, text):
    with pytest.raises(InvalidArgument) as caught:
        model_settings({key: value})
    assert caught.value.message == f"expected the parameter '{key}' to be {text}"


def test_contradicting_precisions_are_rejected():
    with pytest.raises(
        InvalidArgument, match="'HINT_BF16' and 'precision' contradict each other: YES and fp16"
    ):
        model_settings({"HINT_BF16": "YES", "precision": "fp16"})


def test_an_unknown_precision_is_rejected_with_the_known_ones():
    with pytest.raises(
        InvalidArgument, match="parameter 'precision' is 'int3', it must be one of fp32, bf16, fp16"
    ):
        model_settings({"precision": "int3"})


@pytest.mark.parametrize("key", ["INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS", "NUM_STREAMS"])
def test_an_excessive_thread_count_is_rejected(key):
    with pytest.raises(
        InvalidArgument, match=f"parameter '{key}' is 4097, it must be at most 4096"
    ):
        model_settings({key: "4097"})


def test_a_memory_limit_is_rejected():
    with pytest.raises(
        Unsupported,
        match="'memory_limit_bytes' is not supported: OpenVINO cannot limit device memory",
    ):
        model_settings({"memory_limit_bytes": "1GiB"})
