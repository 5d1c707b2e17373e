"""The page of the package is true: its code runs, its command serves what that writes."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tritonclient.http

from tritonpy.testing import free_port
from tritonpy_backend_torch.settings import COMPILE, PRECISIONS

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def port():
    """A port that nobody listens on."""
    return free_port()


@pytest.fixture
def serve(tmp_path, port):
    """`serve(command)`: the server of a command of the page, over HTTP on the test's port, once it is ready."""
    started = []

    def start(command):
        program, *arguments = command.split()
        assert program == "tritonpy"
        more = ["--http-port", str(port), "--allow-grpc", "false", "--allow-metrics", "false"]
        server = subprocess.Popen([sys.executable, "-m", "tritonpy", *arguments, *more], cwd=tmp_path)
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
    training, asking = blocks("python")
    [command] = blocks("sh")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(training)
    runpy.run_path("train.py")
    serve(command)
    (tmp_path / "ask.py").write_text(asking.replace("localhost:8000", f"127.0.0.1:{port}"))
    runpy.run_path("ask.py")["client"].close()
    shown = [float(number) for number in re.findall(r"\d\.\d*(?:e-?\d+)?", capsys.readouterr().out)]
    assert len(shown) == 4
    assert min(shown[0], shown[2]) > 0.9
    assert max(shown[1], shown[3]) < 0.1
    assert shown[:2] == pytest.approx(shown[2:], abs=1e-5)


def test_every_parameter_is_on_the_page():
    source = (Path(__file__).parents[1] / "tritonpy_backend_torch" / "settings.py").read_text(encoding="utf-8")
    names = set(re.findall(r'"([A-Z][A-Z_]{5,})"', source)) | {COMPILE, "precision", "memory_limit_bytes"}
    assert len(names) > 15
    assert [name for name in names if f"`{name}`" not in README] == []
    assert [value for value in PRECISIONS if f"`{value}`" not in README] == []
