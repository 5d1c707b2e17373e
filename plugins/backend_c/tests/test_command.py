from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plugins.backend_c.tests.conftest import compile_backend


def check(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tritonpy", "check-backend", *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_backend_that_can_be_served(backends: Path) -> None:
    done = check(backends / "identity" / "libtriton_identity.so")
    assert done.returncode == 0, done.stdout
    assert "TRITONBACKEND_ModelInstanceExecute" in done.stdout
    assert done.stdout.endswith("it can be served\n")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("int TRITONSERVER_Newer(void); int x(void) { return TRITONSERVER_Newer(); }", "newer"),
        ("int TRITONSERVER_ServerNew(); int x() { return TRITONSERVER_ServerNew(); }", "not supported"),
        ("int x;", "it is no backend"),
    ],
)  # fmt: skip
def test_a_backend_that_cannot_be_served(tmp_path: Path, body: str, problem: str) -> None:
    (tmp_path / "x.c").write_text(body)
    compile_backend(tmp_path / "x.c", tmp_path / "libtriton_x.so", "-Wno-strict-prototypes")
    done = check(tmp_path / "libtriton_x.so")
    assert (done.returncode, problem in done.stdout) == (1, True), done.stdout


def test_a_library_that_the_loader_does_not_find_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.c").touch()
    needed = tmp_path / "libneeded.so"
    compile_backend(tmp_path / "empty.c", needed, f"-Wl,-soname,{needed.name}")
    target = tmp_path / "libtriton_x.so"
    compile_backend(tmp_path / "empty.c", target, "-Wl,--no-as-needed", str(needed))
    assert "libneeded.so is not found: add its folder to LD_LIBRARY_PATH" in check(target).stdout


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    done = check(tmp_path / "none.so")
    assert done.returncode == 2
    assert "is no shared library" in done.stderr
