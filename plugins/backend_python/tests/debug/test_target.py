from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy import StartupError
from tritonpy_backend_python.debug.target import DebugTarget, find_target

from .models import double


def test_a_model_is_named_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = double(tmp_path)
    assert find_target(folder) == DebugTarget(tmp_path, "double", -1)
    monkeypatch.chdir(folder)
    assert find_target(Path()).folder == folder
    monkeypatch.chdir(folder / "1")
    assert find_target(Path("..")) == DebugTarget(tmp_path, "double", -1)


def test_a_file_names_the_version_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = double(tmp_path)
    assert find_target(folder / "1" / "model.py") == DebugTarget(tmp_path, "double", 1)
    monkeypatch.chdir(folder / "1")
    assert find_target(Path("model.py")) == DebugTarget(tmp_path, "double", 1)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nowhere", "does not exist"),
        (".", "no version folder"),
        ("double/config.pbtxt", "is not in a version folder"),
    ],
)
def test_other_paths_are_errors(tmp_path: Path, path: str, text: str) -> None:
    double(tmp_path)
    with pytest.raises(StartupError, match=text):
        find_target(tmp_path / path)
