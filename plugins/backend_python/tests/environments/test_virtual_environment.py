from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tritonpy import Internal
from tritonpy_backend_python.environments import Environment
from tritonpy_backend_python.environments.interpreter import Interpreter
from tritonpy_backend_python.environments.requirements import NO_REQUIREMENTS
from tritonpy_backend_python.environments.virtual_environment import Base, _name

from .conftest import Model, Venv, output_of
from .pythons import python
from .wheels import NUMPY, write_numpy, write_wheel

VERSIONS = "import numpy, tiny; print(tiny.__version__, numpy.__version__)"


def folder_of(environment: Environment) -> Path:
    return Path(environment.interpreter).parents[1]


def test_requirements_are_installed_with_numpy_and_their_progress_is_logged(
    tmp_path: Path, model: Model, index: Path, installer: str, caplog: pytest.LogCaptureFixture
):
    write_wheel(index, "tiny", "1.0")
    path = model.require("tiny>=1\n")
    environment = model.resolve()
    assert folder_of(environment).parent == tmp_path / "cache"
    assert output_of(environment, VERSIONS) == f"1.0 {NUMPY}"
    assert output_of(environment, "import os; print(os.environ['VIRTUAL_ENV'])") == str(
        folder_of(environment)
    )
    name = {"uv": "uv", "pip": "venv and pip"}[installer]
    assert (
        f"building the environment of {path} on Python {sys.version.split()[0]} in " in caplog.text
    )
    assert f" with {name}\n" in caplog.text
    line = {
        "uv": "requirements.txt: + tiny==1.0",
        "pip": "requirements.txt: Successfully installed tiny-1.0",
    }[installer]
    assert line in caplog.text


def test_models_with_equal_requirements_share_an_environment(
    tmp_path: Path, model: Model, index: Path, caplog: pytest.LogCaptureFixture
):
    model.require("numpy\n")
    first = model.resolve()
    model.directory = tmp_path / "other"
    model.version.mkdir(parents=True)
    model.require("numpy\n")
    assert model.resolve().interpreter == first.interpreter
    assert caplog.text.count("building ") == 1
    model.require("numpy>1\n")
    assert model.resolve().interpreter != first.interpreter
    assert caplog.text.count("building ") == 2


def test_the_numpy_of_the_requirements_is_kept(model: Model, index: Path):
    write_wheel(index, "numpy", "1.22.0")
    write_wheel(index, "tiny", "1.0", requires=("numpy<1.23",))
    model.require("tiny\n")
    assert output_of(model.resolve(), VERSIONS) == "1.0 1.22.0"


def test_constraints_apply_to_the_added_numpy(model: Model, index: Path):
    write_wheel(index, "numpy", "1.22.0")
    write_wheel(index, "tiny", "1.0")
    model.require("tiny\n-c constraints.txt\n")
    (model.version / "constraints.txt").write_text("numpy<1.23\n")
    assert output_of(model.resolve(), VERSIONS) == "1.0 1.22.0"


def test_an_old_numpy_is_rejected_with_a_remedy(model: Model, index: Path):
    write_wheel(index, "numpy", "1.19.0")
    path = model.require("numpy<1.20\n")
    with pytest.raises(
        Internal,
        match=rf"has numpy 1\.19\.0, models need 1\.21 or newer: add 'numpy>=1\.21' to {path}$",
    ):
        model.resolve()


def test_paths_are_relative_to_the_files_folder(
    model: Model, installer: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    write_wheel(model.version / "wheels", "tiny", "1.0")
    model.require("-r sub/more.txt\n")
    (model.version / "sub").mkdir()
    (model.version / "sub" / "more.txt").write_text("./wheels/tiny-1.0-py3-none-any.whl\n")
    assert output_of(model.resolve(), VERSIONS) == f"1.0 {NUMPY}"


def test_a_failed_build_reports_the_installers_output_and_leaves_no_files(
    tmp_path: Path, model: Model, index: Path, installer: str
):
    path = model.require("tiny==7\n")
    with pytest.raises(Internal) as raised:
        model.resolve()
    assert raised.value.message.startswith(
        f"{path} cannot be installed for Python {sys.version.split()[0]}: `"
    )
    assert "tiny==7" in raised.value.message
    assert "load the model again" in raised.value.message
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("version", ["3.9", "3.12"])
def test_another_version_is_isolated_and_has_numpy(
    model: Model, index: Path, version: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{python(version).parent}")
    environment = model.resolve(PYTHON_VERSION=version)
    code = "import sys, numpy; print('%d.%d' % sys.version_info[:2], numpy.__version__)"
    assert output_of(environment, code) == f"{version} {NUMPY}"


@pytest.mark.parametrize("activated", [True, False])
def test_an_environment_on_an_execution_environment_is_a_layer(
    model: Model, index: Path, venv: Venv, activated: bool, caplog: pytest.LogCaptureFixture
):
    below = venv(python("3.9"), "1.25.0")
    packages = next(below.glob("lib/python*/site-packages"))
    (packages / "below.py").write_text("")
    (packages / "more.pth").write_text(f"{below}/editable\n")
    (below / "editable").mkdir()
    (below / "editable" / "linked.py").write_text("")
    write_wheel(index, "tiny", "1.0")
    script = below / "bin" / "activate"
    script.write_text(f"{script.read_text()}export GREETING=hello\n")
    if not activated:
        script.unlink()
    model.require("tiny\n")
    environment = model.resolve(EXECUTION_ENV_PATH=str(below))
    code = "import below, linked, os, shutil; print(os.environ.get('GREETING'), shutil.which('python'))"
    assert output_of(environment, VERSIONS) == "1.0 1.25.0"
    greeting = "hello" if activated else None
    assert output_of(environment, code) == f"{greeting} {environment.interpreter}"
    assert not list(below.rglob("tiny*")), "the base was changed"
    path = output_of(environment, "import os; print(os.environ['PATH'])").split(os.pathsep)
    assert path.index(f"{folder_of(environment)}/bin") < path.index(f"{below}/bin")


def test_packages_of_the_base_count_as_installed(model: Model, index: Path, venv: Venv):
    below = venv(sys.executable)
    wheel = write_wheel(index, "tiny", "1.0")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "zipfile",
            "-e",
            wheel,
            next(below.glob("lib/python*/site-packages")),
        ],
        check=True,
    )
    wheel.unlink()
    model.require("tiny>=1\n")
    environment = model.resolve(EXECUTION_ENV_PATH=str(below))
    assert output_of(environment, "import tiny; print(tiny.__file__)").startswith(str(below))


@pytest.mark.parametrize(("layered", "same"), [(True, False), (False, True)])
def test_only_layers_depend_on_the_packages_below(layered: bool, same: bool):
    found = [
        Interpreter((3, 12, 1), "/python", "the same", (packages,), NUMPY, "")
        for packages in ("/a/packages", "/b/packages")
    ]
    bases = [
        Base(Environment("/python", "a test"), interpreter, not layered, layered)
        for interpreter in found
    ]
    assert (_name(bases[0], NO_REQUIREMENTS) == _name(bases[1], NO_REQUIREMENTS)) == same


def test_the_servers_packages_and_search_path_are_not_visible(
    tmp_path: Path, model: Model, index: Path, no_uv: None, monkeypatch: pytest.MonkeyPatch
):
    write_numpy(tmp_path / "search", "9.9")
    write_wheel(index, "tiny", "1.0")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "search"))
    model.require("tiny\nnumpy\n")
    environment = model.resolve()
    monkeypatch.delenv("PYTHONPATH")
    assert output_of(environment, VERSIONS) == f"1.0 {NUMPY}"
    assert (
        output_of(environment, "import importlib.util as u; print(u.find_spec('tritonpy'))")
        == "None"
    )
