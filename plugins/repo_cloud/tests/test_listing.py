from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_repo_cloud.listing import check_files, create_listing
from tritonpy_repo_cloud.remote_file import RemoteFile


def listing(*paths, version="1"):
    return create_listing(
        "m", [RemoteFile(f"m/{path}", path, 1, version) for path in paths], "_SUCCESS"
    )


def test_file_paths_are_relative_to_the_model_and_omit_the_marker():
    assert dict(listing("config.pbtxt", "1/model", "_SUCCESS").files) == {
        "config.pbtxt": "1",
        "1/model": "1",
    }


def test_the_fingerprint_is_that_of_names_and_versions():
    assert listing("a", "b").fingerprint == listing("b", "a").fingerprint
    assert listing("a", "_SUCCESS").fingerprint == listing("a").fingerprint
    assert (
        len({each.fingerprint for each in (listing("a"), listing("b"), listing("a", version="2"))})
        == 3
    )


@pytest.mark.parametrize(
    "path", ["../a", "1/../../a", "/a", "1//a", "./a", "1/./a", "..", "a\0b", "1/../a"]
)
def test_an_invalid_path_is_rejected(path):
    with pytest.raises(
        InvalidArgument, match="model 'm' has a file whose name is not a valid path"
    ):
        check_files(listing("config.pbtxt", path))


@pytest.mark.parametrize("path", ["a", "1/model.onnx", "1/", "..a", "a b", "ä"])
def test_other_names_are_accepted(path):
    check_files(listing(path))
