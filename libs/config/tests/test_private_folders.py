from __future__ import annotations

import os
from pathlib import Path

import pytest

from tritonpy_config import private_folders
from tritonpy_config.private_folders import is_foreign, make_private_folder


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Folders that belong to another user from the module's point of view."""
    folders: set[Path] = set()
    real = private_folders.is_foreign

    def is_foreign_here(status: os.stat_result, user: int) -> bool:
        return any(os.path.samestat(status, os.stat(folder)) for folder in folders) or real(
            status, user
        )

    monkeypatch.setattr(private_folders, "is_foreign", is_foreign_here)
    return folders


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_missing_folders_are_created_for_this_user_only(tmp_path: Path) -> None:
    assert make_private_folder(tmp_path / "a" / "b") == ""
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "b")) == (0o700, 0o700)
    assert make_private_folder(tmp_path / "a" / "b") == ""


def test_a_world_writable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError, match="everybody may write into it"):
        make_private_folder(tmp_path / "open")
    assert make_private_folder(tmp_path / "open", configured=True) == "everybody may write into it"


def test_a_folder_in_a_world_writable_one_is_refused_unless_that_is_sticky(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError, match=f"everybody may write into {tmp_path}/open"):
        make_private_folder(tmp_path / "open" / "mine")
    (tmp_path / "open").chmod(0o1777)
    assert make_private_folder(tmp_path / "open" / "mine") == ""


@pytest.mark.parametrize("configured", [True, False])
def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, foreign: set[Path], configured: bool
) -> None:
    (tmp_path / "theirs").mkdir()
    foreign.add(tmp_path / "theirs")
    with pytest.raises(PermissionError, match="it belongs to another user"):
        make_private_folder(tmp_path / "theirs", configured=configured)


def test_a_link_to_a_folder_of_another_user_is_refused(tmp_path: Path, foreign: set[Path]) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    assert make_private_folder(tmp_path / "link") == ""
    foreign.add(tmp_path / "theirs")
    with pytest.raises(PermissionError, match="it belongs to another user"):
        make_private_folder(tmp_path / "link")


def test_a_folder_inside_a_foreign_one_is_refused(tmp_path: Path, foreign: set[Path]) -> None:
    (tmp_path / "theirs" / "mine").mkdir(parents=True)
    foreign.add(tmp_path / "theirs")
    with pytest.raises(PermissionError, match=f"{tmp_path}/theirs belongs to another user"):
        make_private_folder(tmp_path / "theirs" / "mine")


def test_files_and_broken_links_are_not_folders(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with pytest.raises(NotADirectoryError):
            make_private_folder(tmp_path / name)


def test_root_and_the_user_are_not_foreign(tmp_path: Path) -> None:
    status = tmp_path.stat()
    assert not is_foreign(status, status.st_uid)
    assert not is_foreign(os.stat("/"), 12345)
    assert is_foreign(os.stat_result((0o700, 0, 0, 0, 54321, 0, 0, 0, 0, 0)), 12345)
