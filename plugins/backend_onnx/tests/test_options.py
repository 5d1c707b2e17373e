from __future__ import annotations

import msgspec
import pytest

from tritonpy_backend_onnx.options import OnnxOptions


def test_options_have_the_names_of_triton():
    options = msgspec.convert(
        {"enable-global-threadpool": True, "default-max-batch-size": 8}, OnnxOptions
    )
    assert (options.enable_global_threadpool, options.default_max_batch_size) == (True, 8)


def test_a_negative_thread_count_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"intra-op-thread-count": -1}, OnnxOptions)


def test_an_unknown_key_is_refused():
    with pytest.raises(msgspec.ValidationError, match="thread-count"):
        msgspec.convert({"thread-count": 1}, OnnxOptions)
