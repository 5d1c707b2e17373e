from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy_config.backend_folders import BackendFolders
from tritonpy_config.server import ServerConfig


@pytest.fixture
def folders(tmp_path: Path) -> BackendFolders:
    root = tmp_path / "backends"
    for name in ("mine", "other"):
        (root / name).mkdir(parents=True)
    (root / "mine" / "model.py").touch()
    (root / "model.py").touch()
    (tmp_path / "model.py").touch()
    (root / "mine" / "deep").mkdir()
    (root / "mine" / "deep" / "model.py").touch()
    (root / "folder" / "model.py").mkdir(parents=True)
    return BackendFolders(root)


def test_a_folder_with_a_model_file_is_a_backend(folders: BackendFolders) -> None:
    assert folders.has("mine")
    assert (folders.folder("mine") / "model.py").is_file()


@pytest.mark.parametrize(
    "name", ["other", "nobody", "folder", "", ".", "..", "mine/deep", "../backends/mine", "/mine"]
)
def test_other_names_are_no_backend(folders: BackendFolders, name: str) -> None:
    assert not folders.has(name)


def test_a_backend_may_be_added_while_the_server_runs(folders: BackendFolders) -> None:
    (folders.folder("other") / "model.py").touch()
    assert folders.has("other")


def test_a_plugin_may_provide_a_folder(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "model.py").touch()
    folders = BackendFolders(tmp_path / "backends", {"mine": own})
    assert folders.has("mine")
    assert folders.folder("mine") == own
    below_root = tmp_path / "backends" / "mine"
    below_root.mkdir(parents=True)
    assert folders.folder("mine") == own
    (below_root / "model.py").touch()
    assert folders.folder("mine") == below_root


def test_the_default_is_triton_s() -> None:
    assert BackendFolders().folder("vllm") == Path("/opt/tritonserver/backends/vllm")
    assert ServerConfig().backend_directory == "/opt/tritonserver/backends"


def test_a_backend_of_the_c_interface_exists_with_its_library(folders: BackendFolders) -> None:
    assert not folders.exists("other")
    (folders.folder("other") / "libtriton_other.so").touch()
    assert folders.exists("other")
    assert not folders.has("other")
    assert folders.exists("mine")
    assert not folders.has_library("../backends/other")
