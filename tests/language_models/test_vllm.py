"""SmolLM2 on vLLM's engine, with OpenAI's clients and over the KServe protocol."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.conftest import ROOT, ServerProcess

QUESTION: Any = [{"role": "user", "content": "What is the capital of France?"}]
ANSWER = "The capital of France is Paris."
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture(scope="module")
def client(served: ServerProcess) -> Iterator[openai.OpenAI]:
    url = f"http://127.0.0.1:{served.ports['openai']}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=120) as made:
        yield made


def test_the_model_is_listed(client: openai.OpenAI) -> None:
    assert [each.id for each in client.models.list()] == ["chat"]


def test_a_chat_has_an_answer_and_counts(client: openai.OpenAI) -> None:
    done = client.chat.completions.create(model="chat", messages=QUESTION, temperature=0)
    assert done.choices[0].message.content == ANSWER
    assert done.choices[0].finish_reason == "stop"
    assert done.usage is not None
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (37, 8)


def test_a_stream_has_the_same_text(client: openai.OpenAI) -> None:
    with client.chat.completions.create(
        model="chat", messages=QUESTION, temperature=0, stream=True,
        stream_options={"include_usage": True},
    ) as stream:  # fmt: skip
        chunks = list(stream)
    texts = [each.choices[0].delta.content or "" for each in chunks if each.choices]
    assert "".join(texts) == ANSWER
    assert len([text for text in texts if text]) > 3
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 8


def test_the_prefix_cache_is_used(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "Repeat: " + "one two three " * 100}]
    for _ in range(2):
        done = client.chat.completions.create(model="chat", messages=messages, max_tokens=1)
    assert done.usage is not None
    assert done.usage.prompt_tokens_details is not None
    assert (done.usage.prompt_tokens_details.cached_tokens or 0) > 50
    assert done.choices[0].finish_reason == "length"


def test_many_chats_run_together(served: ServerProcess) -> None:
    url = f"http://127.0.0.1:{served.ports['openai']}/v1"

    async def ask(client: openai.AsyncOpenAI) -> str | None:
        done = await client.chat.completions.create(model="chat", messages=QUESTION, temperature=0)
        return done.choices[0].message.content

    async def ask_all() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            return await asyncio.gather(*(ask(client) for _ in range(8)))

    texts = asyncio.run(ask_all())
    assert all("Paris" in (text or "") for text in texts)


def test_completions_have_choices_seeds_and_log_probabilities(client: openai.OpenAI) -> None:
    options: Any = {"model": "chat", "prompt": "Once upon a time", "max_tokens": 8, "seed": 5}
    several = client.completions.create(**options, n=2, temperature=1)
    again = client.completions.create(**options, n=2, temperature=1)
    assert [each.text for each in several.choices] == [each.text for each in again.choices]
    assert several.choices[0].text != several.choices[1].text
    done = client.completions.create(**options, logprobs=2, temperature=0)
    logprobs = done.choices[0].logprobs
    assert logprobs is not None
    assert len(logprobs.tokens or ()) == 8
    assert "".join(logprobs.tokens or ()) == done.choices[0].text
    tokens = client.completions.create(model="chat", prompt=[1, 2, 3], max_tokens=2)
    assert tokens.usage is not None
    assert tokens.usage.prompt_tokens == 3


def test_a_schema_is_enforced(client: openai.OpenAI) -> None:
    schema: Any = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 10}, "big": {"type": "boolean"}},
        "required": ["city", "big"],
        "additionalProperties": False,
    }
    done = client.chat.completions.create(
        model="chat", messages=QUESTION, max_tokens=60, temperature=1, seed=1,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )  # fmt: skip
    value = json.loads(done.choices[0].message.content or "")
    assert set(value) == {"city", "big"}
    assert isinstance(value["big"], bool)


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_weather"}}]
)
def test_a_required_tool_is_called(client: openai.OpenAI, choice: Any) -> None:
    done = client.chat.completions.create(
        model="chat", messages=QUESTION, tools=[TOOL], tool_choice=choice, max_tokens=80,
        parallel_tool_calls=False,
    )  # fmt: skip
    [call] = done.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert set(json.loads(call.function.arguments)) == {"city"}


def test_an_invalid_parameter_is_an_error(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match=r"top_k"):
        client.chat.completions.create(
            model="chat", messages=QUESTION, extra_body={"top_k": -5}, max_tokens=1
        )


def test_a_prompt_longer_than_the_context_is_an_error(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "one two three " * 1000}]
    with pytest.raises(openai.BadRequestError, match="1024"):
        client.chat.completions.create(model="chat", messages=messages)


def test_a_client_that_leaves_stops_the_engine(served: ServerProcess) -> None:
    body = {"model": "chat", "messages": QUESTION, "max_tokens": 900, "ignore_eos": True,
            "stream": True}  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["openai"], timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        with contextlib.closing(connection.getresponse()) as response:
            response.read(300)
            assert running(served) == 1
    served.wait(lambda: running(served) == 0, "the engine stops")


def running(served: ServerProcess) -> float:
    """Return the number of requests that the engine executes, by its metrics."""
    lines = metrics(served).splitlines()
    line = next(line for line in lines if line.startswith("vllm:num_requests_running{"))
    return float(line.rpartition(" ")[2])


def metrics(served: ServerProcess) -> str:
    """Return the metrics of the server."""
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["metrics"], timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()


def test_every_query_of_the_dashboard_finds_metrics(served: ServerProcess) -> None:
    body = {"text_input": "The capital of France is", "temperature": 0, "max_tokens": 4}
    assert served.request("/v2/models/chat/generate", json.dumps(body)).status == 200
    dashboard = ROOT / "deploy/helm/tritonpy/files/dashboards/language_models.json"
    used = set(re.findall(r"\$\{prefix\}(\w+)\{", dashboard.read_text(encoding="utf-8")))
    assert len(used) > 15
    served_names = set(re.findall(r"^vllm:(\w+)\{", metrics(served), re.MULTILINE))
    assert used <= served_names


def test_the_generate_endpoint_is_that_of_vllm_backend(served: ServerProcess) -> None:
    body = {"text_input": "The capital of France is", "temperature": 0, "max_tokens": 4}
    text = served.request("/v2/models/chat/generate", json.dumps(body)).json()["text_output"]
    assert text.startswith("The capital of France is")
    only = body | {"exclude_input_in_output": True}
    part = served.request("/v2/models/chat/generate", json.dumps(only)).json()["text_output"]
    assert text.endswith(part)
    stream = served.request(
        "/v2/models/chat/generate_stream", json.dumps(body | {"stream": True})
    ).body.decode()
    events = [json.loads(each[6:]) for each in stream.split("\n\n") if each]
    assert "".join(each["text_output"] for each in events) == part


def test_the_tokenizer_of_the_engine_answers(served: ServerProcess) -> None:
    def tokenize(**values: object) -> dict[str, object]:
        body = json.dumps({"tokenize_request": json.dumps(values)})
        text = served.request("/v2/models/chat/generate", body).json()["text_output"]
        answer: dict[str, object] = json.loads(text)
        return answer

    answer = tokenize(text="Rome is a city.")
    assert len(answer["tokens"]) == len(answer["pieces"]) > 3
    assert tokenize(tokens=answer["tokens"]) == {"text": "Rome is a city."}
