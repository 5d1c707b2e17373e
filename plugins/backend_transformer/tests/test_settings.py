from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unsupported
from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.settings import (
    Pooling,
    Settings,
    check_pooling,
    check_precision,
    read_settings,
)


def test_defaults():
    found = read_settings({}, is_encoder_decoder=False)
    assert found == Settings("default", 0, 2, 32, None, True, False, Pooling.MEAN, True, Sampling())
    assert read_settings({}, is_encoder_decoder=True).sampling.max_tokens == 256


def test_every_parameter_is_read():
    found = read_settings(
        {
            "precision": "bf16", "intra_op_thread_count": "3", "inter_op_thread_count": "4", "max_num_seqs": "8", "max_model_len": "100",
            "add_special_tokens": "false", "flash_attention": "true", "pooling": "cls", "normalize": "off",
            "sampling_parameters": '{"temperature": 0.5}', "unrelated": "x",
        },
        is_encoder_decoder=False,
    )  # fmt: skip
    assert found == Settings(
        "bfloat16", 3, 4, 8, 100, False, True, Pooling.CLS, False, Sampling(temperature=0.5)
    )


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("precision", "float8", "'precision' must be one of default, auto, fp32, fp16, bf16, int8, int8_fp32, int8_fp16, int8_bf16, int16, not 'float8'"),
        ("pooling", "sum", "'pooling' must be one of mean, cls, last, pooler, not 'sum'"),
        ("max_num_seqs", "0", "'max_num_seqs' must be a whole number of at least 1, not '0'"),
        ("intra_op_thread_count", "4097", "'intra_op_thread_count' must be a whole number of at least 0 and at most 4096, not '4097'"),
        ("sampling_parameters", "x", "'sampling_parameters' is not valid JSON"),
    ],
)  # fmt: skip
def test_invalid_values_are_rejected(key, value, text):
    with pytest.raises(InvalidArgument) as caught:
        read_settings({key: value}, is_encoder_decoder=False)
    assert text in caught.value.message


def test_an_unsupported_precision_is_rejected_with_the_supported_ones():
    check_precision("int8", {"int8", "float32"}, "this CPU")
    check_precision("auto", set(), "this CPU")
    with pytest.raises(Unsupported) as caught:
        check_precision("bfloat16", {"float32", "int8", "int8_float32"}, "this CPU")
    assert (
        caught.value.message
        == "'precision' bf16 is not possible on this CPU, which supports: fp32, int8, int8_fp32"
    )


def test_pooler_pooling_needs_a_pooler():
    settings = read_settings({"pooling": "pooler"}, is_encoder_decoder=False)
    check_pooling(settings, has_pooler=True)
    with pytest.raises(InvalidArgument, match="the model has no such layer"):
        check_pooling(settings, has_pooler=False)


def test_tensor_parallelism_is_rejected():
    assert read_settings({"tensor_parallel": "false"}, is_encoder_decoder=False) == read_settings(
        {}, is_encoder_decoder=False
    )
    with pytest.raises(Unsupported, match="'tensor_parallel' is not supported"):
        read_settings({"tensor_parallel": "true"}, is_encoder_decoder=False)


def test_a_memory_limit_is_rejected():
    with pytest.raises(
        Unsupported,
        match="'memory_limit_bytes' is not supported: CTranslate2 cannot limit a device's memory",
    ):
        read_settings({"memory_limit_bytes": "1GiB"}, is_encoder_decoder=False)
