from __future__ import annotations

import pytest

from tritonpy_worker.api.model_directory import get_model_dir


def test_the_model_directory_is_the_version_folder(host):
    assert get_model_dir() == "/models/m/1"


def test_there_is_no_model_directory_outside_of_a_model():
    with pytest.raises(RuntimeError, match="only from a model"):
        get_model_dir()
