"""A server with vLLM and a small chat model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import LISTENS, ROOT, Serve, ServerProcess

CONFIG = """
backend: "vllm"
instance_group [{ count: 1 kind: KIND_MODEL }]
parameters { key: "openai.tokenizer" value { string_value: "model" } }
parameters { key: "openai.tool_parser" value { string_value: "hermes" } }
parameters { key: "REPORT_CUSTOM_METRICS" value { string_value: "true" } }
"""
ENGINE = {
    "model": "model",
    "max_model_len": 1024,
    "dtype": "bfloat16",
    "enforce_eager": True,
    "kv_cache_memory_bytes": 300_000_000,
}


@pytest.fixture(scope="session", autouse=True)
def vllm() -> None:
    """Skip the tests of this folder without vLLM."""
    if find_spec("vllm") is None:
        pytest.skip("needs vLLM: python3 tests/run.py vllm installs it")


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model repository with the model `chat`."""
    folder = tmp_path_factory.mktemp("language") / "models"
    version = folder / "chat" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    (version / "model.json").write_text(json.dumps(ENGINE))
    done = subprocess.run(
        [sys.executable, "-m", "tests.language_models.checkpoint", str(version / "model")],
        cwd=ROOT, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="session")
def served(serve: Serve, repository: Path) -> Iterator[ServerProcess]:
    """A server with the model on HTTP, gRPC and OpenAI's API."""
    flags = (f"--model-repository={repository}", "--openai-port=0")
    with serve(*flags, until=None) as running:
        running.wait_until_logged("ready: ", timeout_s=240)
        running.ports.update((name, int(port)) for name, port in LISTENS.findall(running.log))
        yield running
