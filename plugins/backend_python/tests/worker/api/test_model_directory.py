from __future__ import annotations

import pytest

from tritonpy_worker.api.model_directory import get_model_dir


def test_a_model_learns_where_its_version_is(host):
    assert get_model_dir() == "/models/m/1"


def test_outside_of_a_model_there_is_no_such_place():
    with pytest.raises(RuntimeError, match="only from within a model"):
        get_model_dir()
