from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

from tritonpy.api.repository import ModelListing
from tritonpy.repository.load_hints import load_hint, unreadable
from tritonpy.testing import ModelRepository

from .teller import error_of, index, write

NOBODY = 65534


@contextlib.contextmanager
def without_privileges():
    """Let this process read no more than others may: root reads everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_repository():
    """A repository in a folder that everybody may look into, unlike that of the test."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        repository = ModelRepository(Path(folder) / "models")
        yield repository
        for path in sorted(repository.path.rglob("*")):
            path.chmod(0o755)


@pytest.mark.parametrize(
    ("place", "what"),
    [("m", "folder"), ("m/1", "folder"), ("m/1/model.txt", "file"), ("m/config.pbtxt", "file")],
)
def test_a_folder_or_file_that_may_not_be_read_is_named_with_what_to_do(serve, open_repository, caplog, place, what):
    for name in ("first", "m"):
        write(open_repository, name, config='backend: "teller"')
    path = open_repository.path / place
    path.chmod(0)
    with serve(repositories=[{"url": str(open_repository.path)}]) as server:
        server.engine.load_model(
            "first"
        )  # imports what a load needs: only root may read the interpreter's own files here
        with without_privileges():
            error = error_of(server.engine.load_model, "m")
            ((state, reason),) = [line[2:] for line in index(server) if line[0] == "m"]
    mode = "a+rx" if what == "folder" else "a+r"
    assert f"The {what} '{path}' cannot be read by user " in error.message
    assert f": chmod {mode} '{path}'." in error.message
    assert "The " + what in reason
    assert state == "UNAVAILABLE"
    assert "Traceback" not in caplog.text
    assert not any(record.exc_info for record in caplog.records if record.levelname == "ERROR")


def test_what_can_be_read_needs_no_hint(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.txt").write_text("x")
    assert unreadable(tmp_path) == ""
    assert unreadable(tmp_path / "gone") == ""


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Could not determine backend for model 'm'.", " It has no version folder: put the model's file into 'm/1/'."),
        ("unable to find 'x' for model instance 'm'", ". It has no version folder: put the model's file into 'm/1/'."),
        ("no memory", ""),
    ],
)
def test_the_layout_is_spoken_of_where_the_error_may_come_from_it(text, hint):
    assert load_hint(text, ModelListing("m", "", {}, None), None, list) == hint


def test_a_model_file_beside_its_version_folder(serve, model_repository):
    folder = model_repository.add("m", versions={})
    folder.mkdir(parents=True)
    (folder / "model.txt").write_text("1")
    with serve() as server:
        message = error_of(server.engine.load_model, "m").message
    assert message.endswith(
        "Expected model name of the form 'model.<backend_name>'. 'model.txt' lies in the model's folder: move it into a version "
        "folder, as 'm/1/model.txt'."
    )
