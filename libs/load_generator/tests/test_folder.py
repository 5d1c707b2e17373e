from __future__ import annotations

import pytest

from tritonpy_load_generator.inputs.folder import read_folder
from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.target.metadata import TensorDescription

from .metadata import INTS, TEXT, model


def test_each_input_has_a_file_of_its_bytes_or_lines(tmp_path):
    (tmp_path / "A").write_bytes(b"\1\0\0\0\2\0\0\0\3\0\0\0")
    (tmp_path / "T").write_text("one\ntwo\n")
    numbers, texts = read_folder(
        tmp_path, model(INTS, TEXT, TensorDescription("O", "INT8", (1,), optional=True)), {}
    )
    assert (numbers.as_json(), texts.as_json()) == ([1, 2, 3], ["one", "two"])


def test_a_file_that_is_missing_or_too_short_is_named(tmp_path):
    with pytest.raises(BadUsage, match="file 'A'"):
        read_folder(tmp_path, model(INTS), {})
    (tmp_path / "A").write_bytes(b"123")
    with pytest.raises(BadUsage, match="takes 12 bytes, got 3"):
        read_folder(tmp_path, model(INTS), {})
