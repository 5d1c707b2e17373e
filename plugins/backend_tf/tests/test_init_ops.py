from __future__ import annotations

import pytest

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_tf.init_ops import init_ops


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "1").mkdir()
    return tmp_path / "1", tmp_path


def test_no_file_name_means_no_operations(folders):
    assert init_ops("", *folders) == []


def test_the_file_in_the_version_folder_takes_precedence(folders):
    version, model = folders
    (model / "ops.json").write_text('{"init_ops": ["of the model"]}')
    assert init_ops("ops.json", version, model) == ["of the model"]
    (version / "ops.json").write_text('{"init_ops": ["a", "b"]}')
    assert init_ops("ops.json", version, model) == ["a", "b"]


def test_a_missing_file_is_named(folders):
    with pytest.raises(
        Internal, match=r"failed to open text file for read .*/ops.json: No such file or directory"
    ):
        init_ops("ops.json", *folders)


def test_a_file_outside_the_models_folder_is_refused(folders):
    with pytest.raises(InvalidArgument, match="is outside the model's folder"):
        init_ops("../../ops.json", *folders)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"init_ops": "a"}', '{"init_ops": [1]}', "\xff"])
def test_a_malformed_file_is_rejected(folders, text):
    (folders[0] / "ops.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(Internal, match=r'must be of the form {"init_ops": \["name", …\]}'):
        init_ops("ops.json", *folders)
