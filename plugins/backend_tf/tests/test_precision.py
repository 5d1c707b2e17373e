from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unsupported
from tritonpy_backend_tf.precision import cpu_flags, precision_rewriter
from tritonpy_testing import model_config

EVERYTHING = {"avx512f", "avx512_fp16"}


def rewriter(precision=None, kind="CPU", flags=EVERYTHING, text=""):
    parameters = {} if precision is None else {"precision": precision}
    return precision_rewriter(model_config(f'name: "m" {text}'), parameters, kind, flags)


def accelerator(name):
    return f'optimization {{ execution_accelerators {{ gpu_execution_accelerator {{ name: "{name}" }} }} }}'


@pytest.mark.parametrize(
    ("precision", "kind", "expected"),
    [
        (None, "CPU", None),
        ("fp32", "GPU", None),
        ("bf16", "CPU", "auto_mixed_precision_onednn_bfloat16"),
        ("bf16", "MODEL", "auto_mixed_precision_onednn_bfloat16"),
        ("fp16", "CPU", "auto_mixed_precision_cpu"),
        ("fp16", "GPU", "auto_mixed_precision"),
        ("fp16", "MODEL", "auto_mixed_precision"),
    ],
)
def test_a_precision_is_a_rewriter_of_graphs(precision, kind, expected):
    assert rewriter(precision, kind) == expected


def test_an_unknown_precision_is_rejected_with_the_known_ones():
    with pytest.raises(
        InvalidArgument, match="parameter 'precision' is 'int8', it must be one of fp32, bf16, fp16"
    ):
        rewriter("int8")


@pytest.mark.parametrize(
    ("precision", "kind", "flags", "text"),
    [
        (
            "bf16",
            "CPU",
            {"avx2"},
            "precision bf16 is not supported on this processor: it needs one of avx512f, avx_ne_convert",
        ),
        (
            "fp16",
            "CPU",
            {"avx512f"},
            "precision fp16 is not supported on this processor: it needs one of avx512_fp16",
        ),
        (
            "bf16",
            "GPU",
            EVERYTHING,
            "precision bf16 is not supported on this GPU, TensorFlow supports fp16 there",
        ),
    ],
)
def test_an_unsupported_precision_is_rejected(precision, kind, flags, text):
    with pytest.raises(Unsupported, match=text):
        rewriter(precision, kind, flags)


def test_tritons_accelerator_means_half_precision_on_a_gpu_and_nothing_on_the_cpu():
    text = accelerator("auto_mixed_precision")
    assert rewriter(kind="GPU", text=text) == "auto_mixed_precision"
    assert rewriter(kind="CPU", text=text) is None
    assert rewriter("fp32", "GPU", text=text) is None, "the parameter wins"
    assert rewriter(kind="GPU", text=accelerator("gpu_io")) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (accelerator("warp"), "unknown Execution Accelerator 'warp' is requested"),
        (accelerator("tensorrt"), "uses TensorRT, which TensorFlow does not support since 2.18"),
        (
            accelerator("x").replace("gpu_", "cpu_"),
            "CPU Execution Accelerator is not supported in TensorFlow backend",
        ),
    ],
)
def test_unknown_accelerators_are_rejected(text, message):
    with pytest.raises(InvalidArgument, match=message):
        rewriter(text=text)


def test_cpu_flags_are_read_from_proc_cpuinfo():
    assert cpu_flags() is cpu_flags()
    assert all(" " not in flag for flag in cpu_flags())
