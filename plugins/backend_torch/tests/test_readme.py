"""The README is correct: its code runs, and its command serves the resulting models."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tritonclient.http

from tritonpy_backend_torch.settings import COMPILE, PRECISIONS
from tritonpy_testing import free_port

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


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


def test_a_model_goes_from_training_to_serving(tmp_path, monkeypatch, serve, port, capsys):
    training, client_code = blocks("python")
    [command] = blocks("sh")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(training)
    runpy.run_path("train.py")
    serve(command)
    (tmp_path / "ask.py").write_text(client_code.replace("localhost:8000", f"127.0.0.1:{port}"))
    runpy.run_path("ask.py")["client"].close()
    printed = [
        float(number) for number in re.findall(r"\d\.\d*(?:e-?\d+)?", capsys.readouterr().out)
    ]
    assert len(printed) == 4
    assert min(printed[0], printed[2]) > 0.9
    assert max(printed[1], printed[3]) < 0.1
    assert printed[:2] == pytest.approx(printed[2:], abs=1e-5)


def test_the_readme_lists_every_parameter():
    source = (Path(__file__).parents[1] / "tritonpy_backend_torch" / "settings.py").read_text(
        encoding="utf-8"
    )
    names = set(re.findall(r'"([A-Z][A-Z_]{5,})"', source)) | {
        COMPILE,
        "precision",
        "memory_limit_bytes",
    }
    assert len(names) > 15
    assert [name for name in names if f"`{name}`" not in README] == []
    assert [value for value in PRECISIONS if f"`{value}`" not in README] == []
