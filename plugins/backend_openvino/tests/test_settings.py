from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unsupported
from tritonpy_backend_openvino.settings import PRECISIONS, settings_of


def test_nothing_configured_leaves_everything_to_openvino():
    found = settings_of({})
    assert (found.device, found.cpu_extension, found.precision, dict(found.properties)) == ("", "", "", {})
    assert (found.fixed_batch, found.pads, found.reshapes) == (False, False, False)


def test_every_parameter_is_read():
    found = settings_of(
        {
            "PERFORMANCE_HINT": "Throughput", "CPU_EXTENSION_PATH": "/Ops.so", "INFERENCE_NUM_THREADS": "3",
            "COMPILATION_NUM_THREADS": "0", "HINT_BF16": "yes", "NUM_STREAMS": "2", "SKIP_OV_DYNAMIC_BATCHSIZE": "Yes",
            "ENABLE_BATCH_PADDING": "NO", "RESHAPE_IO_LAYERS": "YES", "TARGET_DEVICE": "auto:cpu", "unrelated": "x",
        }
    )  # fmt: skip
    assert (found.device, found.cpu_extension) == ("AUTO:CPU", "/Ops.so")
    assert (found.fixed_batch, found.pads, found.reshapes) == (True, False, True)
    assert dict(found.properties) == {
        "PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_NUM_THREADS": 3, "COMPILATION_NUM_THREADS": 0,
        "INFERENCE_PRECISION_HINT": "bf16", "NUM_STREAMS": 2,
    }  # fmt: skip


@pytest.mark.parametrize("value", ["auto", "NUMA"])
def test_streams_may_be_left_to_the_device(value):
    assert settings_of({"NUM_STREAMS": value}).properties == {"NUM_STREAMS": value.upper()}


@pytest.mark.parametrize("hint", ["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"])
def test_every_hint_of_triton_is_known(hint):
    assert settings_of({"PERFORMANCE_HINT": hint.lower()}).properties == {"PERFORMANCE_HINT": hint}


@pytest.mark.parametrize(("precision", "element"), PRECISIONS.items())
def test_a_precision_is_asked_of_the_device(precision, element):
    found = settings_of({"precision": precision.upper()})
    assert (found.precision, found.properties) == (precision, {"INFERENCE_PRECISION_HINT": element})


def test_a_hint_asks_for_less_than_a_precision():
    assert settings_of({"HINT_BF16": "YES"}).precision == ""
    assert settings_of({"HINT_BF16": "YES", "precision": "bf16"}).precision == "bf16"


def test_padding_needs_a_batch_of_one_size():
    assert settings_of({"ENABLE_BATCH_PADDING": "YES"}).fixed_batch


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("INFERENCE_NUM_THREADS", "-1", "a non-negative number, got -1"),
        ("COMPILATION_NUM_THREADS", "Two", "a non-negative number, got two"),
        ("COMPILATION_NUM_THREADS", "\N{SUPERSCRIPT TWO}", "a non-negative number, got \N{SUPERSCRIPT TWO}"),
        ("HINT_BF16", "NO", "YES, got no"),
        ("NUM_STREAMS", "-1", "either AUTO/NUMA/<int_value>, got -1"),
        ("PERFORMANCE_HINT", "FAST", "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT, got fast"),
        ("SKIP_OV_DYNAMIC_BATCHSIZE", "maybe", "YES or NO, got maybe"),
        ("ENABLE_BATCH_PADDING", "TRUE", "YES or NO, got true"),
        ("RESHAPE_IO_LAYERS", "1", "YES or NO, got 1"),
    ],
)
def test_a_value_that_is_none_is_refused_with_what_there_is(key, value, text):
    with pytest.raises(InvalidArgument) as caught:
        settings_of({key: value})
    assert caught.value.message == f"expected the parameter '{key}' to be {text}"


def test_two_precisions_contradict_each_other():
    with pytest.raises(InvalidArgument, match="'HINT_BF16' and 'precision' contradict each other: YES and fp16"):
        settings_of({"HINT_BF16": "YES", "precision": "fp16"})


def test_a_precision_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(InvalidArgument, match="parameter 'precision' is 'int3', it must be one of fp32, bf16, fp16"):
        settings_of({"precision": "int3"})


@pytest.mark.parametrize("key", ["INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS", "NUM_STREAMS"])
def test_more_threads_than_any_machine_can_have_are_refused(key):
    with pytest.raises(InvalidArgument, match=f"parameter '{key}' is 4097, it must be at most 4096"):
        settings_of({key: "4097"})


def test_a_limit_that_nobody_would_keep_is_refused():
    with pytest.raises(Unsupported, match="'memory_limit_bytes' cannot be kept: OpenVINO bounds no device's memory"):
        settings_of({"memory_limit_bytes": "1GiB"})
