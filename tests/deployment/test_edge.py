"""Machines without network and machines with ARM processors."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

import pytest

from tritonpy_testing import free_port

from .kubernetes import ROOT

MIRROR = "http://deb.debian.org/debian"
# What a Python of Debian and the wheels need; nothing in it runs during the extraction.
ARM_PACKAGES = "python3,libpython3.11-stdlib,libstdc++6,zlib1g,libffi8,libssl3"
# Newer versions end with a segmentation fault in QEMU 7.2, which Debian 12 has.
ONNXRUNTIME_FOR_QEMU = "onnxruntime==1.26.0"


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def serve_digits(command: list[str], log: Path, **environment: str) -> int:
    """Serve the example models, send a request, and return the server's memory in MiB."""
    port = free_port()
    flags = [
        "--model-repository", str(ROOT / "examples" / "models"), "--http-port", str(port),
        "--allow-grpc=false", "--allow-metrics=false",
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "-m", "tritonpy", "serve", *flags],
            stdout=output, stderr=output, env={**os.environ, **environment},
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while (status := request(port)) != 200:
            text = log.read_text(encoding="utf-8", errors="replace")
            assert process.poll() is None, text
            assert time.monotonic() < deadline, (status, text)
            time.sleep(0.1)
        lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
        [memory] = [line.split()[1] for line in lines if line.startswith("VmRSS")]
        return int(memory) // 1024
    finally:
        process.kill()
        process.wait()


def request(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        body = (ROOT / "examples" / "digit.json").read_bytes()
        connection.request("POST", "/v2/models/digits/infer", body)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_a_wheelhouse_installs_and_serves_without_network(tmp_path: Path) -> None:
    wheelhouse, environment = tmp_path / "wheelhouse", tmp_path / "environment"
    run(sys.executable, "tools/wheelhouse.py", "onnx", "--output", str(wheelhouse))
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(
        str(python), "-m", "pip", "install", "-q", "--no-index",
        "--find-links", str(wheelhouse), "tritonpy", "tritonpy-backend-onnx",
        PIP_FIND_LINKS="", PIP_NO_CACHE_DIR="1",
    )  # fmt: skip
    run(str(python), "-m", "pip", "check")
    packages = next(environment.glob("lib/python*/site-packages"))
    disk = run("du", "-sm", str(packages)).split()[0]
    memory = serve_digits([str(python)], tmp_path / "log")
    print(f"core and ONNX Runtime: {disk} MiB of disk, {memory} MiB of memory with two models")


def test_every_wheel_for_arm64_exists_and_the_server_serves_under_qemu(tmp_path: Path) -> None:
    qemu = shutil.which("qemu-aarch64-static")
    if qemu is None or shutil.which("mmdebstrap") is None:
        pytest.skip("needs QEMU and mmdebstrap: apt install qemu-user-static mmdebstrap")
    wheelhouse, site, root = tmp_path / "wheelhouse", tmp_path / "site", tmp_path / "root"
    run(
        sys.executable, "tools/wheelhouse.py", "onnx", "--platform", "aarch64",
        "--output", str(wheelhouse),
    )  # fmt: skip
    print(f"{len(list(wheelhouse.glob('*.whl')))} wheels for aarch64")
    for newest in wheelhouse.glob("onnxruntime-*.whl"):
        newest.unlink()
    run(
        sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
        "--platform", "manylinux_2_28_aarch64", "--platform", "manylinux_2_27_aarch64",
        "--python-version", "3.11", "-d", str(wheelhouse), ONNXRUNTIME_FOR_QEMU,
    )  # fmt: skip
    for wheel in wheelhouse.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    run(
        "mmdebstrap", "--arch=arm64", "--mode=root", "--variant=extract",
        f"--include={ARM_PACKAGES}", "bookworm", str(root), MIRROR,
    )  # fmt: skip
    python = [qemu, "-L", str(root), str(root / "usr/bin/python3.11")]
    environment = {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    machine = run(*python, "-c", "import platform; print(platform.machine())", **environment)
    assert machine.strip() == "aarch64"
    serve_digits(python, tmp_path / "log", **environment)
