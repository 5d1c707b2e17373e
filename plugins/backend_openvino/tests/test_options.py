from __future__ import annotations

import msgspec
import pytest

from tritonpy_backend_openvino.options import OpenVinoOptions


def test_options_have_the_names_of_triton():
    options = msgspec.convert({"default-max-batch-size": 8, "cache-dir": "/cache"}, OpenVinoOptions)
    assert (options.default_max_batch_size, options.cache_dir) == (8, "/cache")


def test_an_unknown_key_is_refused():
    with pytest.raises(msgspec.ValidationError, match="threads"):
        msgspec.convert({"threads": 1}, OpenVinoOptions)
