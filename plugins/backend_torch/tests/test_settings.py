from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_torch.settings import COMPILE, model_settings


def test_nothing_configured_leaves_the_defaults():
    found = model_settings({})
    assert (found.optimized_execution, found.inference_mode, found.cudnn) == (True, True, True)
    assert (
        found.weight_sharing,
        found.cache_cleaning,
        found.channels_last,
        found.allow_pickles,
    ) == (False,) * 4
    assert (found.tensor_fuser, found.jit_profiling, found.jit_executor, found.compile) == (
        None,
    ) * 4
    assert (found.intra_op_threads, found.inter_op_threads, found.memory_limit) == (0, 0, 0)
    assert (found.precision, found.model_class) == ("fp32", "")


def test_every_parameter_is_read():
    found = model_settings(
        {
            "DISABLE_OPTIMIZED_EXECUTION": "true", "INFERENCE_MODE": "off", "DISABLE_CUDNN": "1", "ENABLE_WEIGHT_SHARING": "ON",
            "ENABLE_CACHE_CLEANING": "True", "ENABLE_TENSOR_FUSER": "false", "ENABLE_JIT_PROFILING": "0", "ENABLE_JIT_EXECUTOR": "1",
            "INTRA_OP_THREAD_COUNT": "3", "INTER_OP_THREAD_COUNT": "2", COMPILE: '{"dynamic": true}', "precision": "BF16",
            "CHANNELS_LAST": "true", "ALLOW_PICKLES": "true", "MODEL_CLASS": "Net", "memory_limit_bytes": "1KiB", "unrelated": "x",
        }
    )  # fmt: skip
    assert (found.optimized_execution, found.inference_mode, found.cudnn) == (False, False, False)
    assert (
        found.weight_sharing,
        found.cache_cleaning,
        found.channels_last,
        found.allow_pickles,
    ) == (True,) * 4
    assert (found.tensor_fuser, found.jit_profiling, found.jit_executor) == (False, False, True)
    assert (found.intra_op_threads, found.inter_op_threads, found.memory_limit) == (3, 2, 1024)
    assert (found.compile, found.precision, found.model_class) == ({"dynamic": True}, "bf16", "Net")


def test_the_names_of_the_python_runtime_mean_the_same():
    found = model_settings({"NUM_THREADS": "4", "NUM_INTEROP_THREADS": "5"})
    assert (found.intra_op_threads, found.inter_op_threads) == (4, 5)


def test_a_count_below_one_leaves_the_default():
    assert model_settings({"INTRA_OP_THREAD_COUNT": "-2"}).intra_op_threads == 0


@pytest.mark.parametrize("given", ["true", "false", None])
@pytest.mark.parametrize("option", [True, False])
def test_the_models_parameter_decides_about_pickles(given, option):
    parameters = {} if given is None else {"ALLOW_PICKLES": given}
    assert model_settings(parameters, option).allow_pickles == (
        option if given is None else given == "true"
    )


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (
            "INFERENCE_MODE",
            "maybe",
            "parameter 'INFERENCE_MODE': failed to convert 'maybe' to boolean (true, on, 1, false, off, 0)",
        ),
        (
            "INTER_OP_THREAD_COUNT",
            "many",
            "parameter 'INTER_OP_THREAD_COUNT': failed to convert 'many' to integral number (such as 4)",
        ),
        (
            "precision",
            "int4",
            "parameter 'precision' is 'int4', it must be one of fp32, bf16, fp16",
        ),
        (COMPILE, '{"model": 1}', "'model' is not an optional parameter for 'torch.compile'"),
        (
            COMPILE,
            "[]",
            f"parameter '{COMPILE}' must be a JSON object, such as {{\"dynamic\": true}}",
        ),
        (
            "INTRA_OP_THREAD_COUNT",
            "4097",
            "parameter 'INTRA_OP_THREAD_COUNT' is 4097, it must be at most 4096",
        ),
        (
            "memory_limit_bytes",
            "0",
            "parameter 'memory_limit_bytes' is 0, it must be a number of bytes of at least 1",
        ),
    ],
)
def test_an_invalid_value_is_rejected(key, value, text):
    with pytest.raises(InvalidArgument) as caught:
        model_settings({key: value})
    assert caught.value.message == text


def test_invalid_json_is_rejected():
    with pytest.raises(InvalidArgument, match=f"parameter '{COMPILE}' is not valid JSON: "):
        model_settings({COMPILE: "{dynamic}"})
