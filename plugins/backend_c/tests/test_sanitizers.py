"""The library under the sanitizers of the compiler, with backends and other libraries."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tritonpy_backend_c import include_directory

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
REQUESTS = 100_000
ROUNDS = 2000
SHARED = ("-shared", "-fPIC")


@pytest.fixture(scope="module", params=["address,undefined", "thread"])
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The library, compiled with a sanitizer."""
    made = Build(request.param, tmp_path_factory.mktemp("sanitized"))
    exports = f"-Wl,--version-script={ROOT / 'src' / 'exports.map'}"
    sources = map(str, sorted((ROOT / "src").glob("*.cc")))
    made.compile("libtritonserver.so", *SHARED, exports, *sources)
    return made


class Build:
    """Programs and libraries that are compiled with a sanitizer, in a folder."""

    def __init__(self, sanitizer: str, folder: Path) -> None:
        self.folder = folder
        self._flags = ["-g", "-O1", f"-fsanitize={sanitizer}", "-I", str(include_directory())]

    def compile(self, name: str, *arguments: str) -> Path:
        target = self.folder / name
        is_c = arguments[-1].endswith(".c")
        compiler = ["gcc", "-std=gnu11"] if is_c else ["g++", "-std=c++17"]
        subprocess.run([*compiler, *self._flags, "-o", str(target), *arguments], check=True)
        return target

    def run(self, driver: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Compile a driver and run it."""
        program = self.compile(
            driver.removesuffix(".cc"),
            str(TESTS / driver), str(self.folder / "libtritonserver.so"),
            f"-Wl,-rpath,{self.folder}", "-lpthread",
        )  # fmt: skip
        environment = {"UBSAN_OPTIONS": "halt_on_error=1", "TSAN_OPTIONS": "exitcode=66"}
        return subprocess.run(
            [program, *map(str, arguments)],
            env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip


def test_every_request_ends_once_without_a_report_of_the_sanitizer(build: Build) -> None:
    backend = build.compile(
        "libtriton_misbehave.so", *SHARED, str(TESTS / "backends" / "misbehave.cc")
    )
    done = build.run("driver.cc", backend, REQUESTS)
    assert done.stderr == ""
    assert done.stdout == f"{REQUESTS} requests, 0 without exactly one final response\n"
    assert done.returncode == 0


def test_other_libraries_are_used_without_a_report_of_the_sanitizer(build: Build) -> None:
    for name in ("cache", "agent", "strategy"):
        build.compile(f"{name}.so", *SHARED, str(TESTS / "libraries" / f"{name}.c"))
    done = build.run("libraries_driver.cc", build.folder, ROUNDS)
    assert done.stderr == ""
    assert done.stdout == f"{ROUNDS} rounds, 0 wrong\n"
    assert done.returncode == 0
