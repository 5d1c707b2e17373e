from __future__ import annotations

import json
from pathlib import Path

from tritonpy_backend_python.environments.entry import EnvironmentEntry


def finished(cache: Path) -> EnvironmentEntry:
    entry = EnvironmentEntry(cache, "name")
    entry.folder.mkdir()
    entry.complete("a source")
    return entry


def test_only_complete_environments_are_leased(tmp_path: Path):
    entry = EnvironmentEntry(tmp_path, "name")
    entry.folder.mkdir()
    assert entry.acquire() is None
    entry.complete("a source")
    lease = entry.acquire()
    assert lease
    assert lease.folder == tmp_path / "name"
    assert json.loads((tmp_path / "name.json").read_text())["source"] == "a source"
    lease.release()


def test_a_stamp_without_its_folder_is_incomplete(tmp_path: Path):
    entry = finished(tmp_path)
    entry.folder.rmdir()
    assert not entry.is_complete()


def test_remove_deletes_all_files(tmp_path: Path):
    entry = finished(tmp_path)
    (entry.folder / "file").touch()
    entry.remove()
    assert list(tmp_path.iterdir()) == []
