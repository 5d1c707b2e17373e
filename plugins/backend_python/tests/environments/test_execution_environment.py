from __future__ import annotations

import contextlib
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_python.environments.entry import EnvironmentEntry

from .archives import pack, tar_entry, write_tar
from .conftest import Model, Venv, output_of, write_program
from .pythons import python
from .wheels import NUMPY, write_numpy

WHERE = "import sys, numpy; print(sys.prefix, numpy.__version__)"


def packed(tmp_path: Path, model: Model, name: str = "env.tar.gz", numpy: str = NUMPY) -> Path:
    """Pack a fake conda environment: an interpreter, scripts, and packages that the script adds."""
    folder = tmp_path / "conda"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    write_numpy(folder / "packages", numpy)
    (folder / "bin" / "activate").write_text(
        'here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)\n'
        'export CONDA_PREFIX="$here" PYTHONPATH="$here/packages" PATH="$here/bin:$PATH"\n'
        'for script in "$here"/etc/conda/activate.d/*.sh; do . "$script"; done\n'
    )
    (folder / "etc" / "conda" / "activate.d").mkdir(parents=True)
    (folder / "etc" / "conda" / "activate.d" / "data.sh").write_text(
        'export GDAL_DATA="$CONDA_PREFIX/share"\n'
    )
    program = write_program(folder / "bin" / "conda-unpack", "")
    program.write_text(
        "#!/usr/bin/env python\nimport os, sys\nroot = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))\n"
        "open(os.path.join(root, 'prefix'), 'a').write(root + '\\n')\nprint('prefix', root, 'of', sys.executable)\n"
    )
    return pack(folder, model.directory / name)


def test_a_packed_environment_is_extracted_adjusted_and_activated(
    tmp_path: Path, model: Model, caplog: pytest.LogCaptureFixture
):
    archive = packed(tmp_path, model)
    environment = model.resolve(EXECUTION_ENV_PATH=str(archive))
    folder = Path(environment.interpreter).parents[1]
    assert folder.parent == tmp_path / "cache"
    assert (folder / "prefix").read_text() == f"{folder}\n", (
        "conda-unpack must run once, in the final folder"
    )
    assert f"conda-unpack: prefix {folder} of {folder}/bin/python" in caplog.text
    assert f"Using Python execution env {archive}" in caplog.text
    code = "import os, numpy; print(os.environ['GDAL_DATA'], numpy.__file__)"
    assert output_of(environment, code) == f"{folder}/share {folder}/packages/numpy/__init__.py"
    assert environment.description == f"the execution environment {archive}"


def test_models_with_the_same_archive_share_it(
    tmp_path: Path, model: Model, caplog: pytest.LogCaptureFixture
):
    first = packed(tmp_path, model)
    second = tmp_path / "other.tgz"
    second.write_bytes(first.read_bytes())
    environments = [model.resolve(EXECUTION_ENV_PATH=str(path)) for path in (first, second, first)]
    assert len({environment.interpreter for environment in environments}) == 1
    assert caplog.text.count("extracting ") == 1


def test_a_replaced_archive_is_extracted_while_the_old_one_is_in_use(tmp_path: Path, model: Model):
    archive = packed(tmp_path, model)
    old = model.resolve(EXECUTION_ENV_PATH=str(archive))
    status = archive.stat()
    content = archive.read_bytes()
    write_numpy(tmp_path / "conda" / "more", "9.9")
    pack(tmp_path / "conda", archive)
    assert archive.read_bytes() != content
    os.utime(archive, ns=(status.st_atime_ns, status.st_mtime_ns))
    new = model.resolve(EXECUTION_ENV_PATH=str(archive))
    assert new.interpreter != old.interpreter
    assert output_of(old, "import numpy; print(numpy.__version__)") == NUMPY
    assert (Path(new.interpreter).parents[1] / "more").is_dir()


def test_concurrent_loads_extract_once(
    tmp_path: Path, model: Model, caplog: pytest.LogCaptureFixture
):
    archive = packed(tmp_path, model)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: model.resolve(EXECUTION_ENV_PATH=str(archive)), range(4)))
    assert len({environment.interpreter for environment in found}) == 1
    assert caplog.text.count("extracting ") == 1


def test_an_environment_in_use_is_leased_until_it_is_released(tmp_path: Path, model: Model):
    environment = model.resolve(EXECUTION_ENV_PATH=str(packed(tmp_path, model)))
    entry = EnvironmentEntry(tmp_path / "cache", Path(environment.interpreter).parents[1].name)
    from tritonpy_backend_python.environments import prune

    assert prune(tmp_path / "cache", -1) == []
    environment.release()
    assert prune(tmp_path / "cache", -1) == [entry.name]


@pytest.mark.parametrize("version", ["3.9", "3.12"])
@pytest.mark.parametrize("activate", [True, False])
def test_a_virtual_environment_is_used_where_it_is(
    model: Model, venv: Venv, version: str, activate: bool
):
    folder = venv(python(version))
    if not activate:
        (folder / "bin" / "activate").unlink()
    environment = model.resolve(EXECUTION_ENV_PATH=str(folder))
    assert output_of(environment, WHERE) == f"{folder} {NUMPY}"
    code = "import os, shutil; print(os.environ['VIRTUAL_ENV'], shutil.which('python'))"
    assert output_of(environment, code) == f"{folder} {folder}/bin/python"


def test_a_packed_virtual_environment_is_used(tmp_path: Path, model: Model, venv: Venv):
    archive = pack(venv(python("3.12")), model.directory / "venv.tar.gz")
    environment = model.resolve(EXECUTION_ENV_PATH=str(archive))
    assert output_of(environment, WHERE) == f"{Path(environment.interpreter).parents[1]} {NUMPY}"


def test_a_script_may_provide_the_interpreter(tmp_path: Path, model: Model, venv: Venv):
    folder = venv(sys.executable)
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "activate").write_text(f". {folder}/bin/activate\n")
    assert (
        output_of(model.resolve(EXECUTION_ENV_PATH=str(tmp_path / "env")), WHERE)
        == f"{folder} {NUMPY}"
    )


def test_a_path_may_begin_with_the_models_folder(tmp_path: Path, model: Model, venv: Venv):
    venv(sys.executable, name="model/env")
    environment = model.resolve(EXECUTION_ENV_PATH="$$TRITON_MODEL_DIRECTORY/env")
    assert environment.interpreter == str(tmp_path / "model" / "env" / "bin" / "python")


@pytest.mark.parametrize("path", ["/../venv", "/env/../../venv", "_else", "/.."])
def test_paths_out_of_the_models_folder_are_rejected(
    tmp_path: Path, model: Model, venv: Venv, path: str
):
    venv(sys.executable)
    (tmp_path / "model" / "env").mkdir()
    (tmp_path / "model_else").mkdir()
    with pytest.raises(
        InvalidArgument, match=r"EXECUTION_ENV_PATH.* is outside the model's folder"
    ):
        model.resolve(EXECUTION_ENV_PATH=f"$$TRITON_MODEL_DIRECTORY{path}")


def test_an_environment_may_be_a_link_to_where_it_is_kept(tmp_path: Path, model: Model, venv: Venv):
    (tmp_path / "model" / "link").symlink_to(venv(sys.executable))
    environment = model.resolve(EXECUTION_ENV_PATH="$$TRITON_MODEL_DIRECTORY/link")
    assert environment.interpreter == str(tmp_path / "venv" / "bin" / "python")


def test_paths_are_not_resolved_through_links(tmp_path: Path, model: Model, venv: Venv):
    (tmp_path / "model" / "link").symlink_to(venv(sys.executable))
    with pytest.raises(Internal, match=r"Failed to get the canonical path for .*/model/venv\."):
        model.resolve(EXECUTION_ENV_PATH="$$TRITON_MODEL_DIRECTORY/link/../venv")


def test_a_model_folder_may_be_a_link(tmp_path: Path, model: Model, venv: Venv):
    venv(sys.executable, name="model/env")
    (tmp_path / "link").symlink_to(tmp_path / "model")
    model.directory = tmp_path / "link"
    model.resolve(EXECUTION_ENV_PATH="$$TRITON_MODEL_DIRECTORY/env")


@pytest.mark.parametrize("path", ["/none", "$$TRITON_MODEL_DIRECTORY/none.tar.gz", "/nul\0l"])
def test_a_missing_path_has_tritons_error(tmp_path: Path, model: Model, path: str):
    expected_path = path.replace("$$TRITON_MODEL_DIRECTORY", str(tmp_path / "model"))
    with pytest.raises(Internal) as raised:
        model.resolve(EXECUTION_ENV_PATH=path)
    assert raised.value.message == f"Failed to get the canonical path for {expected_path}."


def test_a_folder_without_environment_has_tritons_error(tmp_path: Path, model: Model):
    with pytest.raises(Internal) as raised:
        model.resolve(EXECUTION_ENV_PATH=str(tmp_path))
    assert raised.value.message == (
        f"Path {tmp_path}/bin/activate does not exist. The Python environment should contain an 'activate' script."
    )


def test_an_archive_without_environment_leaves_no_files(tmp_path: Path, model: Model):
    archive = write_tar(tmp_path / "e.tgz", tar_entry("readme", b"x"))
    with pytest.raises(
        Internal,
        match=r"Path .*/bin/activate does not exist\. The Python environment should contain",
    ):
        model.resolve(EXECUTION_ENV_PATH=str(archive))
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_missing_interpreter_is_an_error(model: Model, venv: Venv):
    folder = venv(sys.executable)
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/gone/python3")
    with pytest.raises(
        Internal, match=rf"the execution environment {folder}: its interpreter .* cannot be started"
    ):
        model.resolve(EXECUTION_ENV_PATH=str(folder))


@pytest.mark.parametrize("is_packed", [True, False])
def test_an_environment_without_numpy_is_rejected_with_a_remedy(
    tmp_path: Path, model: Model, venv: Venv, is_packed: bool
):
    path = folder = venv(sys.executable, numpy="")
    if is_packed:
        path = pack(folder, tmp_path / "env.tgz")
    repair = re.escape(
        "install 'numpy>=1.21' in the environment that was packed, and pack it again"
        if is_packed
        else f"run {folder}/bin/python -m pip install 'numpy>=1.21'"
    )
    with pytest.raises(
        Internal, match=rf"the execution environment {path} has no numpy .*: {repair}$"
    ):
        model.resolve(EXECUTION_ENV_PATH=str(path))


def test_a_failed_conda_unpack_ends_the_load_and_leaves_no_files(tmp_path: Path, model: Model):
    packed(tmp_path, model)
    write_program(
        tmp_path / "conda" / "bin" / "conda-unpack", "echo the prefix is too long\nexit 1"
    )
    archive = pack(tmp_path / "conda", tmp_path / "broken.tgz")
    with pytest.raises(
        Internal, match=r"(?s)cannot be adjusted to its folder: .*\n    the prefix is too long"
    ):
        model.resolve(EXECUTION_ENV_PATH=str(archive))
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_script_without_bash_is_an_error(
    model: Model, venv: Venv, monkeypatch: pytest.MonkeyPatch
):
    folder = venv(sys.executable)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Internal, match=r"activate, which needs bash: install bash"):
        model.resolve(EXECUTION_ENV_PATH=str(folder))
    with contextlib.suppress(FileNotFoundError):
        (folder / "bin" / "activate").unlink()
    assert model.resolve(EXECUTION_ENV_PATH=str(folder)).activate is None


def test_an_empty_parameter_is_ignored(model: Model):
    assert model.resolve(EXECUTION_ENV_PATH="").interpreter == sys.executable
