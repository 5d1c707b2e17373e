from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_python.environments import interpreter as interpreter_module
from tritonpy_backend_python.environments import prune

from .archives import pack
from .conftest import Model, Venv, output_of, write_program
from .pythons import make_venv, python
from .wheels import NUMPY, write_numpy, write_wheel

LOADER = Path(__file__).parent / "loader.py"


class Loader:
    """A process that loads the model and whose output is read line by line."""

    def __init__(self, model: Model, path: str | None = None) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PATH": path or os.environ["PATH"],
            "PYTHONUNBUFFERED": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, LOADER, model.directory, model.options.environments_dir],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert self._process.stdout
        self._lines = iter(self._process.stdout)
        self.lines: list[str] = []

    def until(self, text: str) -> None:
        for line in self._lines:
            self.lines.append(line)
            if text in line:
                return
        raise AssertionError("".join(self.lines))

    def finish(self) -> str:
        self.lines += self._lines
        assert self._process.wait() == 0, "".join(self.lines)
        return self.lines[-1]

    def kill(self) -> None:
        self._process.kill()
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()


@pytest.fixture
def loaders() -> Iterator[list[Loader]]:
    started: list[Loader] = []
    yield started
    for loader in started:
        loader.close()


def test_the_default_is_the_servers_interpreter(tmp_path: Path, model: Model):
    environment = model.resolve()
    assert environment.command(["-c", "x"]) == [sys.executable, "-c", "x"]
    assert environment.variables == {}
    assert environment.description == f"the server's interpreter {sys.executable}"
    assert not (tmp_path / "cache").exists()


def test_a_server_interpreter_without_numpy_is_an_error(
    model: Model, venv: Venv, monkeypatch: pytest.MonkeyPatch
):
    other = str(venv(sys.executable, numpy="") / "bin" / "python")
    monkeypatch.setattr(sys, "executable", other)
    with pytest.raises(
        Internal,
        match=rf"the server's interpreter {other} has no numpy .*: run {other} -m pip install",
    ):
        model.resolve()


def test_an_environment_of_another_version_than_requested_is_rejected(model: Model, venv: Venv):
    folder = venv(python("3.12"))
    with pytest.raises(
        InvalidArgument,
        match=r"PYTHON_VERSION '3\.9' contradicts EXECUTION_ENV_PATH, .* Python 3\.12\.",
    ):
        model.resolve(EXECUTION_ENV_PATH=str(folder), PYTHON_VERSION="3.9")
    assert (
        model.resolve(EXECUTION_ENV_PATH=str(folder), PYTHON_VERSION="3.12").interpreter
        == f"{folder}/bin/python"
    )


def test_an_old_environment_is_rejected_with_and_without_requirements(model: Model, tmp_path: Path):
    write_numpy(make_venv(tmp_path / "old", python("3.8")))
    for _ in range(2):
        with pytest.raises(
            InvalidArgument, match=rf"the execution environment {tmp_path}/old has Python 3\.8\."
        ):
            model.resolve(EXECUTION_ENV_PATH=str(tmp_path / "old"))
        model.require("numpy\n")


def test_requirements_of_the_version_have_priority(model: Model, index: Path):
    for name in ("above", "nearest"):
        write_wheel(index, name, "1.0")
    model.require("above\n", folder=".")
    model_level = model.resolve()
    model.require("nearest\n")
    version_level = model.resolve()
    code = "import importlib.util as u; print([n for n in ('above', 'nearest') if u.find_spec(n)])"
    assert output_of(model_level, code) == "['above']"
    assert output_of(version_level, code) == "['nearest']"


def test_both_layers_are_leased_and_released(tmp_path: Path, model: Model, index: Path, venv: Venv):
    archive = pack(venv(sys.executable), tmp_path / "env.tgz")
    model.require("numpy\n")
    environment = model.resolve(EXECUTION_ENV_PATH=str(archive))
    assert prune(tmp_path / "cache", -1) == []
    environment.release()
    assert len(prune(tmp_path / "cache", -1)) == 2


def test_a_rejected_environment_is_released(tmp_path: Path, model: Model, venv: Venv):
    archive = pack(venv(sys.executable, numpy=""), tmp_path / "env.tgz")
    with pytest.raises(Internal, match="has no numpy") as raised:
        model.resolve(EXECUTION_ENV_PATH=str(archive))
    assert len(prune(tmp_path / "cache", -1)) == 1
    assert raised.value


def test_unreadable_requirements_are_an_error(model: Model, monkeypatch: pytest.MonkeyPatch):
    path = model.require("numpy\n")

    def refuses(_self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuses)
    with pytest.raises(
        Internal, match=rf"cannot be prepared: \[Errno 13\] Permission denied: '{path}'"
    ):
        model.resolve()


def test_two_concurrent_servers_build_once(model: Model, index: Path, loaders: list[Loader]):
    model.require("numpy\n")
    loaders += [Loader(model), Loader(model)]
    ends = [loader.finish() for loader in loaders]
    assert ends[0] == ends[1]
    assert sum("building " in line for loader in loaders for line in loader.lines) == 1


def test_remains_of_a_killed_server_are_not_used(
    tmp_path: Path, model: Model, loaders: list[Loader]
):
    """The installer outlives the server: another build in its folder waits for its end."""
    os.mkfifo(tmp_path / "go")
    make_venv(tmp_path / "ready", sys.executable)
    write_numpy(tmp_path / "packages")
    write_program(
        tmp_path / "programs" / "uv",
        f"""case "$1" in
        venv) for last; do :; done; {sys.executable} -m venv --without-pip "$last"; touch "$last/half";;
        pip) echo installing; test "$(timeout 60 head -n 1 {tmp_path}/go)" = ok || exit 1
             cp -r {tmp_path}/packages/numpy "${{4%/bin/python}}"/lib/python*/site-packages/;;
        esac""",
    )
    path = f"{tmp_path / 'programs'}{os.pathsep}{os.environ['PATH']}"
    model.require("numpy\n")
    first = Loader(model, path)
    loaders.append(first)
    first.until("requirements.txt: installing")
    first.kill()
    second = Loader(model, path)
    loaders.append(second)
    second.until("waiting for another load, which prepares the environment of ")
    (tmp_path / "go").write_text("fail\n")
    second.until("requirements.txt: installing")
    (tmp_path / "go").write_text("ok\n")
    interpreter = second.finish().split()[1]
    assert subprocess.run([interpreter, "-c", "import numpy; print(numpy.__version__)"], capture_output=True, text=True,
                          check=True).stdout == f"{NUMPY}\n"  # fmt: skip
    assert len(list((tmp_path / "cache").glob("python*.json"))) == 1


def test_a_second_load_does_not_inspect_the_interpreter_again(
    model: Model, index: Path, monkeypatch: pytest.MonkeyPatch
):
    model.require("numpy\n")
    first = model.resolve()
    monkeypatch.setattr(
        interpreter_module, "_inspect", lambda _it: pytest.fail("the value is cached")
    )
    assert model.resolve().interpreter == first.interpreter
