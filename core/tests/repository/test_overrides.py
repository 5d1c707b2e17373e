from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy.errors import InvalidArgument
from tritonpy.repository.overrides import write_override


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_files_lie_in_a_folder_of_their_own_until_it_is_cleaned_up():
    folder = write_override("m", {"file:1/model.onnx": b"x", "file:2/data/weights": b"y"})
    path = Path(folder.name)
    assert (path / "1/model.onnx").read_bytes() == b"x"
    assert (path / "2/data/weights").read_bytes() == b"y"
    folder.cleanup()
    assert not path.exists()


@pytest.mark.parametrize(
    "key", ["file:../1/model", "file:1/../../model", "file:/tmp/model", "file:1/..", "file:", "1/../x"]
)
def test_a_path_that_leaves_the_model_is_refused_and_leaves_nothing(folder, key):
    with pytest.raises(InvalidArgument) as refused:
        write_override("m", {"file:1/model": b"x", key: b"y"})
    assert f"'{key}'" in refused.value.message
    assert list(folder.iterdir()) == []
