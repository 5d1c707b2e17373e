from __future__ import annotations

import fcntl
import subprocess
import sys

import pytest

from tritonpy_agent_sealed.private_folder import PrivateFolder


def test_it_is_new_empty_and_goes(tmp_path):
    folder = PrivateFolder(tmp_path)
    (folder.path / "file").write_bytes(b"1")
    folder.remove()
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_those_of_others_that_live_stay(tmp_path):
    first, second = PrivateFolder(tmp_path), PrivateFolder(tmp_path)
    assert first.path.is_dir()
    assert second.path.is_dir()
    first.remove()
    second.remove()


def test_one_that_is_just_made_stays(tmp_path, monkeypatch):
    lock = fcntl.flock

    def others_look_first(*arguments):
        monkeypatch.undo()
        PrivateFolder(tmp_path).remove()
        lock(*arguments)

    monkeypatch.setattr(fcntl, "flock", others_look_first)
    folder = PrivateFolder(tmp_path)
    assert folder.path.is_dir()
    folder.remove()


def test_one_that_a_killed_process_left_goes_with_the_next(tmp_path):
    script = (
        "import os, sys; from pathlib import Path; from tritonpy_agent_sealed.private_folder import PrivateFolder; "
        "PrivateFolder(Path(sys.argv[1])); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    folder = PrivateFolder(tmp_path)
    assert not left.exists()
    folder.remove()


def test_without_a_place_it_is_where_temporary_files_are(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = PrivateFolder(None)
    assert folder.path.is_relative_to(tmp_path)
    folder.remove()


def test_a_place_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(OSError, match="no-such"):
        PrivateFolder(tmp_path / "no-such")
