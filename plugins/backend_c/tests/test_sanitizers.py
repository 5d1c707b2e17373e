"""The library under the sanitizers of the compiler, with a backend that breaks every rule."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tritonpy_backend_c import include_directory

ROOT = Path(__file__).parents[1]
REQUESTS = 100_000


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_every_request_ends_once_without_a_report_of_the_sanitizer(
    tmp_path: Path, sanitizer: str
) -> None:
    flags = ["-std=c++17", "-g", "-O1", f"-fsanitize={sanitizer}", "-I", str(include_directory())]
    library, backend, driver = (
        tmp_path / name for name in ("libtritonserver.so", "libtriton_misbehave.so", "driver")
    )
    exports = f"-Wl,--version-script={ROOT / 'src' / 'exports.map'}"
    sources = map(str, sorted((ROOT / "src").glob("*.cc")))
    shared = ["-shared", "-fPIC"]
    compile_ = ["g++", *flags]
    subprocess.run([*compile_, *shared, exports, "-o", str(library), *sources], check=True)
    misbehave = str(ROOT / "tests" / "backends" / "misbehave.cc")
    subprocess.run([*compile_, *shared, "-o", str(backend), misbehave], check=True)
    subprocess.run(
        [
            *compile_,
            "-o",
            str(driver),
            str(ROOT / "tests" / "driver.cc"),
            str(library),
            f"-Wl,-rpath,{tmp_path}",
            "-lpthread",
        ],
        check=True,
    )
    environment = {**os.environ, "UBSAN_OPTIONS": "halt_on_error=1", "TSAN_OPTIONS": "exitcode=66"}
    done = subprocess.run(
        [driver, backend, str(REQUESTS)],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == f"{REQUESTS} requests, 0 without exactly one final response\n"
    assert done.returncode == 0
