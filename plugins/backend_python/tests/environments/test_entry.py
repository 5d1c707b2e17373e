from __future__ import annotations

import json
from pathlib import Path

from tritonpy_backend_python.environments.entry import Entry


def finished(cache: Path) -> Entry:
    entry = Entry(cache, "name")
    entry.folder.mkdir()
    entry.complete("a source")
    return entry


def test_a_folder_is_lent_only_when_it_is_finished(tmp_path: Path):
    entry = Entry(tmp_path, "name")
    entry.folder.mkdir()
    assert entry.borrow() is None
    entry.complete("a source")
    lease = entry.borrow()
    assert lease
    assert lease.folder == tmp_path / "name"
    assert json.loads((tmp_path / "name.json").read_text())["source"] == "a source"
    lease.release()


def test_a_stamp_without_its_folder_is_not_finished(tmp_path: Path):
    entry = finished(tmp_path)
    entry.folder.rmdir()
    assert not entry.is_complete()


def test_removing_leaves_nothing(tmp_path: Path):
    entry = finished(tmp_path)
    (entry.folder / "file").touch()
    entry.remove()
    assert list(tmp_path.iterdir()) == []
