from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

from tritonpy.api.repository import ModelListing
from tritonpy.repository.load_hints import load_hint, unreadable_hint
from tritonpy_testing import ModelRepository

from .version_backend import error_of, index, write

UNPRIVILEGED_USER = 65534


@contextlib.contextmanager
def without_privileges():
    """Drop root's privileges in this block, as root can read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(UNPRIVILEGED_USER)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_repository():
    """Return a repository in a folder that every user can read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        repository = ModelRepository(Path(folder) / "models")
        yield repository
        for path in sorted(repository.path.rglob("*")):
            path.chmod(0o755)


@pytest.mark.parametrize(
    ("folder_path", "kind"),
    [("m", "folder"), ("m/1", "folder"), ("m/1/model.txt", "file"), ("m/config.pbtxt", "file")],
)
def test_an_unreadable_folder_or_file_is_named_with_a_remedy(serve, open_repository, caplog, folder_path, kind):
    for name in ("first", "m"):
        write(open_repository, name, config='backend: "version_reporter"')
    path = open_repository.path / folder_path
    path.chmod(0)
    with serve(repositories=[{"url": str(open_repository.path)}]) as server:
        server.engine.load_model("first")  # imports modules that only root may be able to read
        with without_privileges():
            error = error_of(server.engine.load_model, "m")
            ((state, reason),) = [line[2:] for line in index(server) if line[0] == "m"]
    mode = "a+rx" if kind == "folder" else "a+r"
    assert f"The {kind} '{path}' cannot be read by user " in error.message
    assert f": chmod {mode} '{path}'." in error.message
    assert "The " + kind in reason
    assert state == "UNAVAILABLE"
    assert "Traceback" not in caplog.text
    assert not any(record.exc_info for record in caplog.records if record.levelname == "ERROR")


def test_readable_files_give_no_hint(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.txt").write_text("x")
    assert unreadable_hint(tmp_path) == ""
    assert unreadable_hint(tmp_path / "gone") == ""


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Could not determine backend for model 'm'.", " It has no version folder: put the model's file into 'm/1/'."),
        ("unable to find 'x' for model instance 'm'", ". It has no version folder: put the model's file into 'm/1/'."),
        ("no memory", ""),
    ],
)
def test_layout_hints_are_given_for_errors_that_a_wrong_layout_causes(text, hint):
    assert load_hint(text, ModelListing("m", "", {}, None), None, list) == hint


def test_a_model_file_outside_its_version_folder_gives_a_hint(serve, model_repository):
    folder = model_repository.add("m", versions={})
    folder.mkdir(parents=True)
    (folder / "model.txt").write_text("1")
    with serve() as server:
        message = error_of(server.engine.load_model, "m").message
    assert message.endswith(
        "Expected model name of the form 'model.<backend_name>'. 'model.txt' is in the model's folder: move it into a version "
        "folder, as 'm/1/model.txt'."
    )
