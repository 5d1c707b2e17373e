from __future__ import annotations

import zipfile

import pytest
import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.archive import ArchiveFormat, detect_format, open_records

from .models import Linear


def test_each_format_is_detected_by_content(models, compile_module):
    torch.save(Linear().state_dict(), models.at("weights.pt"))
    torch.save(Linear().state_dict(), models.at("old.pt"), _use_new_zipfile_serialization=False)
    assert detect_format(models.script(Linear(), "any.name")) is ArchiveFormat.TORCHSCRIPT
    assert detect_format(models.linear_export()) is ArchiveFormat.EXPORTED
    assert detect_format(compile_module) is ArchiveFormat.AOTI
    assert detect_format(models.at("weights.pt")) is ArchiveFormat.PICKLE
    assert detect_format(models.at("old.pt")) is ArchiveFormat.PICKLE
    assert detect_format(models.at("model.py")) is ArchiveFormat.PYTHON


def test_a_program_of_an_older_torch_is_supported(tmp_path):
    with zipfile.ZipFile(tmp_path / "old.pt2", "w") as archive:
        archive.writestr("version", "8.1")
        archive.writestr("serialized_exported_program.json", "{}")
    assert detect_format(tmp_path / "old.pt2") is ArchiveFormat.EXPORTED


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is not a PyTorch model"),
        (b"\x08\x07\x12\x07pytorch", "is not a PyTorch model"),
        (b"PK\x03\x04 and then nothing", "is damaged or truncated"),
    ],
)
def test_foreign_files_are_rejected(tmp_path, content, text):
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    with pytest.raises(InvalidArgument, match=text):
        detect_format(path)


def test_a_truncated_file_is_reported_as_damaged(models):
    path = models.script(Linear())
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InvalidArgument, match="is damaged or truncated"):
        detect_format(path)


def test_another_archive_is_rejected(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("word/document.xml", "x")
    with pytest.raises(InvalidArgument, match="is an archive, but not of a PyTorch model"):
        detect_format(tmp_path / "model.pt")


def test_records_are_read_without_the_folder_that_holds_them(models):
    with open_records(models.linear_export()) as found:
        assert found.read("archive_format") == b"pt2"
        assert "archive_format" in found
        assert found.below("models/") == ["models/model.json"]
        assert found.size("archive_format") == 3
