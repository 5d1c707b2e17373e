from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tritonpy_backend_python.environments.environment import (
    Environment,
    folder_variables,
    foreign_variables,
)

from .conftest import output_of

ARGUMENTS = "import json, sys; print(json.dumps(sys.argv[1:]))"
HOSTILE = [
    "a b",
    "$(touch /tmp/unexpected_wait)",
    "`id`",
    '"',
    "'",
    "-",
    "",
    "*",
    "\\",
    "\n",
    ";exit 3",
]


def activated(folder: Path, script: str, interpreter: str = sys.executable) -> Environment:
    path = folder / 'it\'s $HOME; "mine"' / "activate"
    path.parent.mkdir()
    path.write_text(script, encoding="utf-8")
    return Environment(interpreter, "a test", activate=path)


def test_without_a_script_the_command_starts_the_interpreter():
    assert Environment("/p/python", "a test").command(["-m", "worker", "x y"]) == [
        "/p/python",
        "-m",
        "worker",
        "x y",
    ]


@pytest.mark.parametrize(
    "script", [None, "set -- changed arguments\n", "set -eu\n", "tritonpy=1\nset -f\n"]
)
def test_arguments_are_passed_unchanged(tmp_path: Path, script: str | None):
    environment = (
        Environment(sys.executable, "a test") if script is None else activated(tmp_path, script)
    )
    import json

    assert json.loads(output_of(environment, ARGUMENTS, *HOSTILE)) == HOSTILE


def test_the_script_sets_variables_and_sees_no_arguments(tmp_path: Path):
    environment = activated(tmp_path, 'export SEEN="$#" GREETING="hello world"\n')
    assert (
        output_of(environment, "import os; print(os.environ['SEEN'], os.environ['GREETING'])", "x")
        == "0 hello world"
    )


def test_the_process_becomes_the_interpreter(tmp_path: Path):
    environment = activated(tmp_path, "")
    process = subprocess.Popen(
        environment.command(["-c", "import os; print(os.getpid())"]),
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout
        assert int(process.stdout.read()) == process.pid


def test_a_failed_script_is_reported_and_ignored(tmp_path: Path):
    environment = activated(tmp_path, "export HALF=1\nfalse\n")
    done = subprocess.run(
        environment.command(["-c", "import os; print(os.environ['HALF'])"]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1\n"
    assert "activate ended with status 1" in done.stderr


def test_the_interpreters_own_folder_is_first_on_the_path(tmp_path: Path):
    environment = activated(tmp_path, "PATH=/other:$PATH\n")
    first = output_of(environment, "import os; print(os.environ['PATH'].split(os.pathsep)[0])")
    assert first == os.path.dirname(sys.executable)


def test_an_interpreter_name_is_found_on_the_scripts_path(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    environment = activated(tmp_path, f"PATH={tmp_path}/bin:$PATH\n", "python3")
    assert output_of(environment, "import sys; print(sys.executable)") == str(
        tmp_path / "bin" / "python3"
    )


@pytest.mark.parametrize(
    ("marker", "variable"), [("pyvenv.cfg", "VIRTUAL_ENV"), ("conda-meta", "CONDA_PREFIX")]
)
def test_a_folder_that_has_no_script_is_activated_by_variables(
    tmp_path: Path, marker: str, variable: str
):
    (tmp_path / marker).mkdir()
    variables = folder_variables(tmp_path, {"PATH": "/below"})
    assert variables == {"PATH": f"{tmp_path}/bin:/below", variable: str(tmp_path)}


def test_another_interpreter_does_not_inherit_the_servers_home(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    assert foreign_variables() == {"PYTHONHOME": ""}
    assert (
        output_of(Environment(sys.executable, "a test", variables=foreign_variables()), "print(1)")
        == "1"
    )
    monkeypatch.delenv("PYTHONHOME")
    assert foreign_variables() == {}
