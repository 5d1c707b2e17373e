from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy.errors import InvalidArgument
from tritonpy.model.labels import read_labels
from tritonpy_testing.parse import model_config


def config(filename: str) -> object:
    return model_config(
        f'name: "m" output {{ name: "OUT" data_type: TYPE_FP32 dims: 2 label_filename: "{filename}" }} '
        'output { name: "PLAIN" data_type: TYPE_FP32 dims: 2 }'
    )


def test_each_line_is_a_label(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("cat\ngrüner dog\n", encoding="utf-8")
    assert read_labels(config("labels.txt"), tmp_path) == {"OUT": ["cat", "grüner dog"]}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"label file 'none.txt' of model 'm' cannot be read: No such file"):
        read_labels(config("none.txt"), tmp_path)


def test_a_file_outside_the_models_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    with pytest.raises(InvalidArgument, match=r"'\.\./secret' is outside the model's folder"):
        read_labels(config("../secret"), tmp_path / "m")


def test_a_file_may_be_a_link_to_where_it_is_kept(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text("cat\n")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "labels.txt").symlink_to(tmp_path / "blob")
    assert read_labels(config("labels.txt"), tmp_path / "m") == {"OUT": ["cat"]}
