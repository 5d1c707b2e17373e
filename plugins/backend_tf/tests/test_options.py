from __future__ import annotations

import msgspec
import pytest

from tritonpy_backend_tf.options import TensorFlowOptions


def test_options_have_the_names_of_triton():
    options = msgspec.convert(
        {
            "allow-soft-placement": False,
            "gpu-memory-fraction": 0.5,
            "version": 2,
            "default-max-batch-size": 8,
        },
        TensorFlowOptions,
    )
    assert (
        options.allow_soft_placement,
        options.gpu_memory_fraction,
        options.default_max_batch_size,
    ) == (
        False,
        0.5,
        8,
    )


def test_files_with_code_are_rejected_by_default():
    assert TensorFlowOptions().keras_safe_mode


@pytest.mark.parametrize("wrong", [{"version": 1}, {"gpu-memory-fraction": 1.5}, {"gpu-memory": 1}])
def test_a_wrong_value_and_an_unknown_key_are_refused(wrong):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, TensorFlowOptions)
