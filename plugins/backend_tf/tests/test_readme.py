"""The README is correct: its code runs, and its command serves the resulting models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import tritonclient.http

from tritonpy_backend_tf.options import TensorFlowOptions
from tritonpy_backend_tf.precision import PRECISIONS
from tritonpy_testing import free_port

PACKAGE = Path(__file__).parents[1]
README = (PACKAGE / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def port():
    """An unused port."""
    return free_port()


@pytest.fixture
def serve(tmp_path, port):
    """`serve(command)`: the ready server of a README command, with HTTP on the test's port."""
    started = []

    def start(command):
        program, *arguments = command.split()
        assert program == "tritonpy"
        more = ["--http-port", str(port), "--allow-grpc", "false", "--allow-metrics", "false"]
        server = subprocess.Popen(
            [sys.executable, "-m", "tritonpy", *arguments, *more], cwd=tmp_path
        )
        started.append(server)
        client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{port}")
        while not _is_ready(client):
            assert server.poll() is None, "the server ended"
            time.sleep(0.05)
        client.close()

    yield start
    for server in started:
        server.terminate()
        server.wait()


def _is_ready(client):
    try:
        return client.is_server_ready()
    except ConnectionError:
        return False


def run(code, folder):
    """Run a program of the README in a new process and return its output."""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_model_goes_from_training_to_serving(tmp_path, serve, port):
    training, client_code = blocks("python")
    [command] = blocks("sh")
    run(training, tmp_path)
    serve(command)
    printed = run(client_code.replace("localhost:8000", f"127.0.0.1:{port}"), tmp_path)
    inside, outside = (float(number) for number in re.findall(r"\d\.\d*(?:e-?\d+)?", printed))
    assert inside > 0.8
    assert outside < 0.2


def test_the_readme_lists_every_parameter_option_and_precision():
    source = (PACKAGE / "tritonpy_backend_tf" / "settings.py").read_text(encoding="utf-8")
    names = {*re.findall(r'"([A-Z][A-Z_]{5,})"', source), "precision", "memory_limit_bytes"} - {
        "DEFAULT"
    }
    assert len(names) >= 9
    assert [name for name in names if f"`{name}`" not in README] == []
    assert [value for value in PRECISIONS if f"`{value}`" not in README] == []
    options = {field.encode_name for field in msgspec.structs.fields(TensorFlowOptions)} - {
        "version"
    }
    assert [name for name in options if name not in README] == []
