from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_testing import model_config


def test_defaults_are_written_out():
    config = model_config('name: "m" max_batch_size: 4 dynamic_batching {}')
    assert list(config.dynamic_batching.preferred_batch_size) == [4]
    assert config.instance_group[0].count == 1


def test_every_error_has_its_position():
    with pytest.raises(InvalidArgument, match=r"(?s)max_bath_size.*backendd"):
        model_config('max_bath_size: 1\nbackendd: "b"')
