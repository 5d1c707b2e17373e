"""Whole servers whose models are checked by repository agents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonpy import StartupError
from tritonpy.cli import main
from tritonpy_testing import (
    InferenceServerException,
    InferInput,
    InProcessClient,
    ModelRepository,
    RunningServer,
    running_server,
)

CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""
MODEL_PY = """
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

FACTOR = int(Path(__file__).with_name("factor").read_text())

class TritonPythonModel:
    def execute(self, requests):
        numbers = [pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each * np.int32(FACTOR))]) for each in numbers]
"""
CHECKSUM = 'model_repository_agents {{ agents {{ name: "checksum" parameters {{ key: "SHA-256:1/factor" value: "{}" }} }} }}'


def write(repository: Path, name: str, factor: int, more: str = "") -> Path:
    return ModelRepository(repository).add(
        name, CONFIG + more, {1: {"model.py": MODEL_PY, "factor": str(factor)}}
    )


@contextmanager
def serving(repository: Path, **settings: Any) -> Iterator[RunningServer]:
    config = {
        "repositories": [{"url": str(repository)}],
        "control": {"mode": "explicit", "load": ["*"]},
        "frontends": {"http": False, "grpc": False, "metrics": False},
        "exit_on_error": False,
        **settings,
    }
    with running_server(config) as server:
        yield server


def response(server: RunningServer, model: str) -> int:
    given = InferInput("IN", [1], "INT32")
    given.set_data_from_numpy(np.array([21], np.int32))
    return int(InProcessClient(server).infer(model, [given]).as_numpy("OUT")[0])


def reason(server: RunningServer, model: str) -> str:
    index = InProcessClient(server).get_model_repository_index()
    return next(entry["reason"] for entry in index if entry["name"] == model)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_checksum_mismatch_rejects_the_new_version_and_keeps_the_old_one(tmp_path: Path) -> None:
    write(tmp_path, "good", 2, CHECKSUM.format(digest("2")))
    write(tmp_path, "bad", 2, CHECKSUM.format(digest("3")))
    with serving(tmp_path) as server:
        assert response(server, "good") == 42
        assert "Mismatched SHA-256 hash for file 1/factor" in reason(server, "bad")
        write(tmp_path, "good", 3, CHECKSUM.format(digest("2")))
        with pytest.raises(InferenceServerException, match="Mismatched SHA-256 hash"):
            InProcessClient(server).load_model("good")
        assert response(server, "good") == 42


@pytest.fixture
def keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["seal", "keys", str(tmp_path / "keys")]) == 0
    capsys.readouterr()
    return tmp_path / "keys"


def seal(source: Path, target: Path, keys: Path) -> None:
    flags = [
        "--signing-key",
        str(keys / "signing.pem"),
        "--encryption-key",
        str(keys / "encryption.key"),
    ]
    assert main(["seal", "model", str(source), str(target), *flags]) == 0


def trusting(keys: Path, opened: Path) -> dict[str, Any]:
    opened.mkdir()
    options = {
        "verify_key_files": [str(keys / "verify.pem")],
        "decryption_key_files": [str(keys / "encryption.key")],
        "directory": str(opened),
    }
    return {"repo_agents": {"sealed": options}, "required_repo_agents": ["sealed"]}


def test_a_sealed_model_serves_and_leaves_no_plaintext_behind(tmp_path: Path, keys: Path) -> None:
    seal(write(tmp_path / "plain", "m", 2), tmp_path / "models" / "m", keys)
    with serving(tmp_path / "models", **trusting(keys, tmp_path / "opened")) as server:
        assert response(server, "m") == 42
        assert len(list((tmp_path / "opened").iterdir())) == 1
        InProcessClient(server).load_model("m")
        assert response(server, "m") == 42
    assert list((tmp_path / "opened").iterdir()) == []


def test_unsealed_models_are_rejected_when_sealing_is_required(tmp_path: Path, keys: Path) -> None:
    write(tmp_path / "models", "plain", 2)
    seal(write(tmp_path / "source", "m", 2), tmp_path / "models" / "changed", keys)
    (tmp_path / "models" / "changed" / "1" / "model.py").write_text(MODEL_PY)
    seal(tmp_path / "source" / "m", tmp_path / "models" / "good", keys)
    with serving(tmp_path / "models", **trusting(keys, tmp_path / "opened")) as server:
        assert response(server, "good") == 42
        assert "loads only models that name the repository agent 'sealed'" in reason(
            server, "plain"
        )
        assert "is not encrypted" in reason(server, "changed")
        with pytest.raises(InferenceServerException, match="repository agent 'sealed'"):
            InProcessClient(server).load_model("good", config='{"backend": "python"}')
        assert response(server, "good") == 42
        assert len(list((tmp_path / "opened").iterdir())) == 1


def test_a_required_agent_without_its_options_stops_the_start(tmp_path: Path) -> None:
    with (
        pytest.raises(StartupError, match=r"repo_agents\.sealed.*must name a key"),
        serving(tmp_path, required_repo_agents=["sealed"]),
    ):
        pass


def test_a_required_agent_that_is_not_installed_stops_the_start(tmp_path: Path) -> None:
    with (
        pytest.raises(StartupError, match="repository agent 'seal'"),
        serving(tmp_path, required_repo_agents=["seal"]),
    ):
        pass
