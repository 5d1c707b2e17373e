from __future__ import annotations

import fcntl
import subprocess
import sys

import pytest

from tritonpy_agent_sealed.private_folder import PrivateFolder


def test_a_folder_is_created_empty_and_removed(tmp_path):
    folder = PrivateFolder(tmp_path)
    (folder.path / "file").write_bytes(b"1")
    folder.remove()
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_folders_in_use_are_kept(tmp_path):
    first, second = PrivateFolder(tmp_path), PrivateFolder(tmp_path)
    assert first.path.is_dir()
    assert second.path.is_dir()
    first.remove()
    second.remove()


def test_a_folder_under_creation_is_kept(tmp_path, monkeypatch):
    lock = fcntl.flock

    def clean_up_first(*arguments):
        monkeypatch.undo()
        PrivateFolder(tmp_path).remove()
        lock(*arguments)

    monkeypatch.setattr(fcntl, "flock", clean_up_first)
    folder = PrivateFolder(tmp_path)
    assert folder.path.is_dir()
    folder.remove()


def test_an_abandoned_folder_is_removed_by_the_next_one(tmp_path):
    script = (
        "import os, sys; from pathlib import Path; from tritonpy_agent_sealed.private_folder import PrivateFolder; "
        "PrivateFolder(Path(sys.argv[1])); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    folder = PrivateFolder(tmp_path)
    assert not left.exists()
    folder.remove()


def test_the_default_parent_is_the_temporary_directory(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = PrivateFolder(None)
    assert folder.path.is_relative_to(tmp_path)
    folder.remove()


def test_a_missing_parent_is_an_error(tmp_path):
    with pytest.raises(OSError, match="no-such"):
        PrivateFolder(tmp_path / "no-such")
