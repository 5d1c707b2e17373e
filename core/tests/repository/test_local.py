from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import sys
import threading

import pytest

from tritonpy.api.repository import RepositoryContext
from tritonpy.plugins import install_command
from tritonpy.repository import builtin
from tritonpy.repository.local import FolderWatch, LocalRepository, list_model
from tritonpy_testing import RepositoryContract
from tritonpy_types.errors import Unavailable


class TestLocalRepository(RepositoryContract):
    plugin_class = LocalRepository
    plugin = builtin
    name = "file"
    unreachable_url = "/no/such/place"

    def place(self, tmp_path, models):
        root = tmp_path / "models"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        for name, files in models.items():
            for path, content in files.items():
                file = root / name / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                os.utime(file, ns=(0, len(content)))
        return str(root)


def repository(path, tmp_path):
    return LocalRepository(LocalRepository.Options(), RepositoryContext(str(path), tmp_path))


def test_a_file_url_names_the_folder(model_repository, tmp_path):
    folder = model_repository.path / "with space"
    folder.mkdir()
    assert repository(folder.as_uri(), tmp_path).root == folder


def test_files_and_hidden_folders_are_no_models(model_repository, tmp_path):
    model_repository.add("m")
    model_repository.add(".git")
    (model_repository.path / "README").write_text("read me")
    assert list(repository(model_repository.path, tmp_path).names()) == ["m"]


def test_find_returns_the_same_listing_as_scan(model_repository, tmp_path):
    model_repository.add("m", config="x", versions={1: {"model": "1"}, 2: {}})
    model_repository.add(".hidden")
    found = repository(model_repository.path, tmp_path)
    assert found.find("m") == found.scan()["m"]
    assert found.find("missing") is None
    assert found.find(".hidden") is None
    assert list(found.names()) == list(found.scan())


def test_a_version_without_files_is_listed(model_repository):
    assert list(list_model("m", model_repository.add("m")).files) == ["1/"]


@pytest.mark.parametrize("call", ["scan", "names", "find"])
@pytest.mark.parametrize("there", [False, True])
def test_a_path_that_is_no_folder_cannot_be_read(tmp_path, call, there):
    path = tmp_path / "models"
    if there:
        path.write_text("a file")
    arguments = ["m"] if call == "find" else []
    with pytest.raises(Unavailable, match=str(path)):
        getattr(repository(path, tmp_path), call)(*arguments)


def test_a_model_folder_may_be_a_link(model_repository, tmp_path):
    target = tmp_path / "elsewhere"
    (target / "1").mkdir(parents=True)
    (target / "1" / "model").write_text("x")
    (model_repository.path / "linked").symlink_to(target)
    (model_repository.path / "dangling").symlink_to(tmp_path / "nowhere")
    assert {
        name: list(listing.files)
        for name, listing in repository(model_repository.path, tmp_path).scan().items()
    } == {"linked": ["1/model"]}


def test_links_to_folders_above_end(model_repository):
    folder = model_repository.add("m", versions={1: {"model": "x"}})
    for name in ("a", "b"):
        (folder / name).symlink_to(folder)
        (folder / "1" / name).symlink_to("..")
    assert [file for file in list_model("m", folder).files if file.endswith("model")] == ["1/model"]


def test_a_model_that_vanishes_while_it_is_listed_is_empty(model_repository):
    assert list_model("gone", model_repository.path / "gone").files == {}


watched = pytest.mark.skipif(
    importlib.util.find_spec("watchfiles") is None, reason="needs watchfiles"
)


@pytest.fixture
def change():
    return threading.Event()


@watched
@pytest.mark.parametrize("kind", ["new file", "new folder", "content", "removal"])
def test_a_change_below_the_folder_calls_the_callback(tmp_path, change, kind):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model").write_text("old")
    watch = FolderWatch.start(tmp_path, change.set)
    numbers = iter(range(10_000))

    def act():
        if kind == "new file":
            (tmp_path / "m" / f"file {next(numbers)}").write_text("new")
        elif kind == "new folder":
            (tmp_path / f"model {next(numbers)}").mkdir()
        elif kind == "content":
            (tmp_path / "m" / "1" / "model").write_text(f"new {next(numbers)}")
        elif next(numbers) % 2:
            (tmp_path / "m" / "1" / "model").write_text("again")
        else:
            (tmp_path / "m" / "1" / "model").unlink()

    for _ in range(60):  # changes before the watch has started are not seen, so repeat them
        act()
        if change.wait(1):
            break
    assert change.is_set()
    watch.stop()
    assert not any(thread.name.startswith("watch") for thread in threading.enumerate())


@watched
def test_a_missing_folder_is_left_to_polls(tmp_path, change, caplog):
    watch = FolderWatch.start(tmp_path / "none", change.set)
    watch._thread.join(30)
    assert "changes are detected by polling" in caplog.text
    watch.stop()


def test_a_failure_of_the_watch_is_left_to_polls(tmp_path, change, caplog):
    def watch(*_, **__):
        raise OSError(28, os.strerror(28))

    failing = FolderWatch(watch, tmp_path, change.set)
    failing._run()
    assert "No space left on device" in caplog.text


def test_every_reported_change_calls_the_callback(tmp_path):
    calls = []
    FolderWatch(lambda *_, **__: iter([{1}, {2}]), tmp_path, lambda: calls.append(1))._run()
    assert calls == [1, 1]


def test_without_the_package_there_is_no_watch(tmp_path, change, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, "tritonpy")
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert FolderWatch.start(tmp_path, change.set) is None
    assert install_command("tritonpy[watch]") in caplog.text
