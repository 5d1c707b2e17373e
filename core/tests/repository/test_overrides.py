from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy.repository.overrides import write_override
from tritonpy_types.errors import InvalidArgument


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
    "key",
    [
        "file:../1/model",
        "file:1/../../model",
        "file:/../model",
        "file:1/..",
        "file:",
        "file:/",
        "file:.",
        "1/../x",
    ],
)
def test_a_path_that_leaves_the_model_is_refused_and_leaves_nothing(folder, key):
    with pytest.raises(InvalidArgument) as refused:
        write_override("m", {"file:1/model": b"x", key: b"y"})
    assert f"'{key}'" in refused.value.message
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["m" * 300, "é" * 300, "m\0", "a b/c"])
def test_any_name_of_a_model_makes_a_folder(name):
    folder = write_override(name, {"file:1/model": b"x"})
    assert (Path(folder.name) / "1" / "model").read_bytes() == b"x"
    folder.cleanup()


@pytest.mark.parametrize("key", ["file:/1/model", "file:///1//model", "file:./1/model"])
def test_a_leading_slash_is_dropped(key):
    folder = write_override("m", {key: b"x"})
    assert (Path(folder.name) / "1" / "model").read_bytes() == b"x"
    folder.cleanup()


@pytest.mark.parametrize(
    "name", ["1/" + "x" * 300, "y/" * 3000 + "z", "x" * 300 + "/model", "\ud800"]
)
def test_a_name_that_no_file_can_have_is_refused_in_a_short_text(folder, name):
    with pytest.raises(InvalidArgument) as refused:
        write_override("m", {"file:1/model": b"x", f"file:{name}": b"y"})
    assert len(refused.value.message) < 500
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "keys",
    [("file:1/model", "file:1"), ("file:1", "file:1/model"), ("file:1/model", "file:1/model/x")],
)
def test_a_name_that_is_a_file_and_a_folder_is_refused(folder, keys):
    with pytest.raises(InvalidArgument, match="names a file that is a folder in another parameter"):
        write_override("m", dict.fromkeys(keys, b"x"))
    assert list(folder.iterdir()) == []
