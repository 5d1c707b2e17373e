"""A real chat model on llama.cpp: one file, served and chatted with."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.conftest import ROOT, Serve, ServerProcess
from tests.gguf_models.conftest import ready_server

QUESTION = [{"role": "user", "content": "What is the capital of Italy? Answer in one word."}]
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "large": {"type": "boolean"}},
    "required": ["city", "large"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def served(serve: Serve, smollm2: Path) -> Iterator[ServerProcess]:
    with ready_server(serve, str(smollm2)) as running:
        yield running


def test_the_template_and_the_special_tokens_come_from_the_file(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="smollm2", messages=QUESTION, temperature=0, max_tokens=24
    )
    assert "Rome" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 20


def test_a_stream_has_the_same_text_and_the_counts(client: openai.OpenAI) -> None:
    options = {"model": "smollm2", "messages": QUESTION, "temperature": 0, "max_tokens": 16}
    whole = client.chat.completions.create(**options)
    chunks = list(
        client.chat.completions.create(
            **options, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert text == whole.choices[0].message.content
    assert len(chunks) > 3
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens


def test_a_schema_is_obeyed(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="smollm2", messages=[{"role": "user", "content": "Describe Paris as JSON."}],
        max_tokens=80, seed=1,
        response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}},
    )  # fmt: skip
    assert json.loads(answer.choices[0].message.content).keys() == {"city", "large"}


def test_concurrent_chats_are_all_answered(client: openai.OpenAI) -> None:
    def ask(number: int) -> str:
        answer = client.chat.completions.create(
            model="smollm2", messages=[{"role": "user", "content": f"Count to {number}."}],
            max_tokens=8,
        )  # fmt: skip
        return answer.choices[0].message.content

    with ThreadPoolExecutor(10) as threads:
        assert all(threads.map(ask, range(10)))


def test_other_apis_reach_the_same_model(served: ServerProcess, client: openai.OpenAI) -> None:
    response = client.responses.create(
        model="smollm2", input=QUESTION[0]["content"], temperature=0, max_output_tokens=24
    )
    assert "Rome" in response.output_text
    url = f"http://127.0.0.1:{served.ports['openai']}"
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=120) as other:
        message = other.messages.create(
            model="smollm2", max_tokens=24, messages=QUESTION, extra_body={"temperature": 0}
        )
        counted = other.messages.count_tokens(model="smollm2", messages=QUESTION)
    assert message.content[0].text == response.output_text
    usage = message.usage
    assert counted.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_texts_become_tokens_and_back(client: openai.OpenAI) -> None:
    def post(path: str, **members: object) -> Any:
        return client.with_options(base_url=str(client.base_url).removesuffix("v1/")).post(
            path, body={"model": "smollm2", **members}, cast_to=object
        )

    tokens = post("/tokenize", prompt="Rome is a city.")["tokens"]
    assert post("/detokenize", tokens=tokens) == {"prompt": "Rome is a city."}


def test_the_terminal_chat_answers_a_pipe(smollm2: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tritonpy", "chat", str(smollm2), "--temperature=0", "--max-tokens=24"],
        cwd=ROOT, input=QUESTION[0]["content"] + "\n", capture_output=True, text=True, timeout=180,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Rome" in done.stdout
    assert "tokens/s" in done.stderr
