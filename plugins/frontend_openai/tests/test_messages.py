"""Anthropic's Messages API, with Anthropic's own client."""

from __future__ import annotations

import anthropic
import numpy as np
import pytest
from google.protobuf import text_format

from tritonpy import Internal

from .conftest import TEMPLATE

WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
SAMPLING = {"temperature": 0.5, "top_k": 3}
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'


@pytest.fixture
def hermes(start):
    return start(models={"story": {"chat_template": TEMPLATE, "tool_parser": "hermes"}})


@pytest.fixture
def connect():
    clients = []

    def make(live):
        clients.append(anthropic.Anthropic(base_url=live.url, api_key="k", max_retries=0))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def ask(client, **members):
    given = {"model": "story", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}]}
    return client.messages.create(**{**given, **members})


def test_a_message(live, engine, connect):
    engine.script = lambda call: ["Good", " day", {"finish_reason": "stop"}]
    done = ask(connect(live), system="Be kind", stop_sequences=["x"], extra_body=SAMPLING)
    assert (done.type, done.role, done.model, done.stop_reason) == (
        "message", "assistant", "story", "end_turn",
    )  # fmt: skip
    assert [(each.type, each.text) for each in done.content] == [("text", "Good day")]
    assert done.id.startswith("msg_")
    [call] = engine.calls
    assert call.prompt == "<system>Be kind<user>Hi<assistant>"
    assert call.sampling == {"temperature": 0.5, "top_k": 3, "stop": ["x"], "max_tokens": 50}


def test_a_limited_message_says_so_and_counts_cached_tokens_apart(live, engine, connect):
    counts = {
        "num_input_tokens": np.array([9], np.uint32),
        "num_cached_tokens": np.array([4], np.uint32),
        "finish_reason": "length",
    }
    engine.add("story", _with_cached(engine))
    engine.script = lambda call: ["a", " b", counts]
    done = ask(connect(live))
    assert done.stop_reason == "max_tokens"
    assert (done.usage.input_tokens, done.usage.cache_read_input_tokens) == (5, 4)
    assert done.usage.output_tokens == 3


def _with_cached(engine):
    config = text_format.MessageToString(engine.configs["story"])
    for kind in ("return_num_cached_tokens", "num_cached_tokens"):
        side = "input" if kind.startswith("return") else "output"
        datatype = "TYPE_BOOL" if side == "input" else "TYPE_UINT32"
        optional = " optional: true" if side == "input" else ""
        config += f'{side} {{ name: "{kind}" data_type: {datatype} dims: 1{optional} }}\n'
    return config.replace('name: "story"\n', "", 1)


def test_a_stream_has_the_events_of_anthropic(live, engine, connect):
    engine.script = lambda call: ["Good", " day", {"finish_reason": "stop"}]
    with connect(live).messages.stream(
        model="story", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        assert "".join(stream.text_stream) == "Good day"
        final = stream.get_final_message()
    assert final.stop_reason == "end_turn"
    body = {
        "model": "story",
        "max_tokens": 9,
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    text = live.call("POST", "/v1/messages", body).body.decode()
    kinds = [line[7:] for line in text.splitlines() if line.startswith("event: ")]
    assert kinds == [
        "message_start", "content_block_start", "content_block_delta", "content_block_delta",
        "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip


def test_tool_calls_in_a_document_and_in_a_stream(hermes, engine, connect):
    engine.script = lambda call: ["Let me see. ", CALL[:30], CALL[30:], "\n"]
    client = connect(hermes)
    done = ask(client, tools=[WEATHER])
    text, use = done.content
    assert text.text.strip() == "Let me see."
    assert (use.type, use.name, use.input) == ("tool_use", "get_weather", {"city": "Paris"})
    assert done.stop_reason == "tool_use"
    with client.messages.stream(
        model="story", max_tokens=9, tools=[WEATHER], messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        final = stream.get_final_message()
    assert [each.type for each in final.content] == ["text", "tool_use"]
    assert final.content[1].input == {"city": "Paris"}
    assert final.stop_reason == "tool_use"


def test_results_of_tools_and_earlier_thoughts_are_part_of_the_chat(hermes, engine, connect):
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": "Wait."},
                {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Rome"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "Sun"}]},
                {"type": "text", "text": "So?"},
            ],
        },
    ]  # fmt: skip
    ask(connect(hermes), messages=messages, tools=[WEATHER], system=[{"type": "text", "text": "S"}])
    assert engine.calls[-1].prompt == (
        "<system>S<user>Weather?<assistant>Wait.<tool>Sun<user>So?<assistant>"
    )


@pytest.mark.parametrize(
    ("choice", "guide"),
    [
        ({"type": "any"}, "array"),
        ({"type": "tool", "name": "get_weather"}, "object"),
    ],
)
def test_a_required_tool_is_enforced_by_a_schema(hermes, engine, connect, choice, guide):
    written = '{"city": "Oslo"}'
    if guide == "array":
        written = f'[{{"name": "get_weather", "parameters": {written}}}]'
    engine.script = lambda call: [written]
    done = ask(connect(hermes), tools=[WEATHER], tool_choice=choice)
    assert done.content[0].input == {"city": "Oslo"}
    assert f'\\"type\\": \\"{guide}\\"' in engine.calls[-1].sampling["structured_outputs"].replace(
        '"', '\\"'
    )


def test_reasoning_is_a_block_of_its_own(start, engine, connect):
    live = start(models={"story": {"chat_template": TEMPLATE, "reasoning_parser": "think"}})
    engine.script = lambda call: ["<think>Hm", "m</think>", "\n\nYes"]
    client = connect(live)
    thought, text = ask(client, thinking={"type": "enabled", "budget_tokens": 1024}).content
    assert (thought.thinking, text.text) == ("Hmm", "Yes")
    with client.messages.stream(
        model="story", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        assert [each.type for each in stream.get_final_message().content] == ["thinking", "text"]


def test_an_empty_answer_is_an_empty_text(live, engine, connect):
    engine.script = lambda call: [""]
    assert ask(connect(live)).content[0].text == ""
    with connect(live).messages.stream(
        model="story", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        assert stream.get_final_message().content[0].text == ""


@pytest.mark.parametrize(
    ("members", "error", "text"),
    [
        ({"model": "nothing"}, anthropic.NotFoundError, "Unknown model: nothing"),
        ({"max_tokens": 0}, anthropic.BadRequestError, "max_tokens"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            anthropic.BadRequestError,
            "models here take text, not images",
        ),
        (
            {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            anthropic.BadRequestError,
            "'web_search' is a tool of Anthropic's servers",
        ),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "tool"}},
            anthropic.BadRequestError,
            "needs a name",
        ),
        ({"messages": [{"role": "robot", "content": "x"}]}, anthropic.BadRequestError, "role"),
    ],
)
def test_refusals_have_anthropics_form(hermes, connect, members, error, text):
    with pytest.raises(error) as refused:
        ask(connect(hermes), **members)
    assert text in refused.value.body["error"]["message"]
    assert refused.value.body["type"] == "error"


def test_an_error_in_the_stream_is_an_event(live, engine, connect):
    engine.script = lambda call: ["Good", Internal("the engine broke")]
    stream = ask(connect(live), stream=True)
    with pytest.raises(anthropic.APIStatusError, match="the engine broke"):
        list(stream)


def test_the_key_of_anthropics_clients_is_a_bearer_token(guarded, engine, connect):
    assert ask(connect(guarded)).content[0].text == "Hello world"
    assert engine.calls[-1].request.principal.name == "anna"
    other = anthropic.Anthropic(base_url=guarded.url, api_key="wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        ask(other)
    other.close()
