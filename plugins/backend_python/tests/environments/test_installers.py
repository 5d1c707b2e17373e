from __future__ import annotations

import os
from pathlib import Path

import pytest

from tritonpy_backend_python.environments import Environment
from tritonpy_backend_python.environments.installers import choose_installer, installer_variables

from .conftest import write_program


@pytest.mark.parametrize(
    ("uv", "layered", "chosen"),
    [("exit 0", False, "uv"), ("exit 127", False, "venv and pip"), (None, False, "venv and pip"), ("exit 0", True, "venv and pip")],
)  # fmt: skip
def test_uv_is_used_if_it_works_and_there_is_no_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uv: str | None, layered: bool, chosen: str
):
    if uv is not None:
        write_program(tmp_path / "uv", uv)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_installer(layered).name == chosen


def test_the_users_settings_reach_the_installer_and_search_paths_of_models_do_not(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("PIP_INDEX_URL", "https://mine")
    monkeypatch.setenv("UV_INDEX_URL", "https://mine")
    monkeypatch.setenv("PYTHONPATH", "/models")
    variables = installer_variables(
        Environment("/p/python", "a test", variables={"VIRTUAL_ENV": "/v"})
    )
    assert variables["PIP_INDEX_URL"] == variables["UV_INDEX_URL"] == "https://mine"
    assert variables["PATH"] == os.environ["PATH"]
    assert "PYTHONPATH" not in variables
    assert variables["VIRTUAL_ENV"] == "/v"
