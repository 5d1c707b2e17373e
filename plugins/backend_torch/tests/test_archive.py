from __future__ import annotations

import zipfile

import pytest
import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.archive import Form, form_of, records

from .making import Linear


def test_each_form_is_known_by_its_content(models, compiled):
    torch.save(Linear().state_dict(), models.at("weights.pt"))
    torch.save(Linear().state_dict(), models.at("old.pt"), _use_new_zipfile_serialization=False)
    assert form_of(models.script(Linear(), "any.name")) is Form.TORCHSCRIPT
    assert form_of(models.linear_export()) is Form.EXPORTED
    assert form_of(compiled) is Form.AOTI
    assert form_of(models.at("weights.pt")) is Form.PICKLE
    assert form_of(models.at("old.pt")) is Form.PICKLE
    assert form_of(models.at("model.py")) is Form.PYTHON


def test_a_program_of_an_older_torch_is_one_too(tmp_path):
    with zipfile.ZipFile(tmp_path / "old.pt2", "w") as archive:
        archive.writestr("version", "8.1")
        archive.writestr("serialized_exported_program.json", "{}")
    assert form_of(tmp_path / "old.pt2") is Form.EXPORTED


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is no PyTorch model"),
        (b"\x08\x07\x12\x07pytorch", "is no PyTorch model"),
        (b"PK\x03\x04 and then nothing", "is damaged or was not written to its end"),
    ],
)
def test_what_torch_did_not_write_is_refused(tmp_path, content, text):
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    with pytest.raises(InvalidArgument, match=text):
        form_of(path)


def test_a_file_that_was_cut_off_is_said_to_be_damaged(models):
    path = models.script(Linear())
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InvalidArgument, match="is damaged or was not written to its end"):
        form_of(path)


def test_another_archive_is_no_model(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("word/document.xml", "x")
    with pytest.raises(InvalidArgument, match="is an archive, but not one of a PyTorch model"):
        form_of(tmp_path / "model.pt")


def test_records_are_read_without_the_folder_that_holds_them(models):
    with records(models.linear_export()) as found:
        assert found.read("archive_format") == b"pt2"
        assert "archive_format" in found
        assert found.below("models/") == ["models/model.json"]
        assert found.size("archive_format") == 3
