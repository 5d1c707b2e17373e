from __future__ import annotations

import json

import pytest

from tritonpy import Internal, InvalidArgument

from .conftest import TEMPLATE
from .scripted_engine import TENSORS, VLLM

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'


def tokens(text, size=3):
    return [text[start : start + size] for start in range(0, len(text), size)]


def test_the_openai_client_chats(live, engine):
    done = live.client.chat.completions.create(
        model="story", messages=[{"role": "user", "content": "Hi"}]
    )
    assert done.choices[0].message.content == "Hello world"
    assert (done.choices[0].message.role, done.choices[0].finish_reason) == ("assistant", "stop")
    assert done.usage is not None
    assert (done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.total_tokens) == (
        7,
        2,
        9,
    )
    assert done.id.startswith("chatcmpl-")
    assert engine.calls[0].prompt == "<user>Hi<assistant>"


def test_the_openai_client_streams(live):
    with live.client.chat.completions.create(
        model="story",
        messages=[{"role": "user", "content": "Hi"}],
        stream=True,
        stream_options={"include_usage": True},
    ) as stream:
        chunks = list(stream)
    assert [each.choices[0].delta.content for each in chunks[:-1]] == ["", "Hello", " world", None]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 9
    assert all(each.usage is None for each in chunks[:-1])


def test_a_stream_ends_with_done(live):
    reply = live.chat(stream=True)
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.events[-1] == "[DONE]"
    assert "usage" not in reply.events[0]


def test_any_text_survives_a_stream(live, engine):
    texts = ['"quotes"', "\\ \n\t\x01", "ü € 𝄞 \u2028", "<>&", "}\n\ndata: x"]
    engine.script = lambda call: texts
    events = live.chat(stream=True).events[1:-2]
    assert [each["choices"][0]["delta"]["content"] for each in events] == texts


def test_the_parameters_reach_the_model(live, engine):
    live.chat(
        temperature=0.5,
        top_p=0.9,
        max_tokens=5,
        max_completion_tokens=9,
        stop="x",
        seed=3,
        presence_penalty=1,
        frequency_penalty=-1,
        logit_bias={"5": -100},
        min_tokens=1,
        ignore_eos=True,
        top_k=4,
        repetition_penalty=1.5,
        user="anna",
        store=True,
    )
    assert engine.calls[0].sampling == {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 9,
        "stop": ["x"],
        "seed": 3,
        "presence_penalty": 1.0,
        "frequency_penalty": -1.0,
        "logit_bias": {"5": -100.0},
        "min_tokens": 1,
        "ignore_eos": True,
        "top_k": 4,
        "repetition_penalty": 1.5,
    }


def test_without_a_limit_the_context_is_the_limit(live, engine, start):
    live.chat()
    assert engine.calls[0].sampling == {"max_tokens": 2**31 - 1}
    start(default_max_tokens=99).chat()
    assert engine.calls[1].sampling == {"max_tokens": 99}
    start(models={"story": {"chat_template": TEMPLATE, "default_max_tokens": 7}}).chat()
    assert engine.calls[2].sampling == {"max_tokens": 7}


def test_several_choices_are_several_requests(live, engine):
    engine.script = lambda call: ["seed ", str(call.sampling["seed"])]
    choices = live.chat(n=3, seed=10).json["choices"]
    assert [each["index"] for each in choices] == [0, 1, 2]
    assert [each["message"]["content"] for each in choices] == ["seed 10", "seed 11", "seed 12"]
    usage = live.chat(n=3, seed=1).json["usage"]
    assert usage == {"prompt_tokens": 7, "completion_tokens": 6, "total_tokens": 13}


def test_several_choices_are_one_stream(live, engine):
    engine.script = lambda call: [str(call.sampling["seed"]), "!"]
    texts = {0: "", 1: ""}
    reasons = {}
    for each in live.chat(n=2, seed=5, stream=True).events[:-1]:
        choice = each["choices"][0]
        texts[choice["index"]] += choice["delta"].get("content", "")
        if choice["finish_reason"]:
            reasons[choice["index"]] = choice["finish_reason"]
    assert texts == {0: "5!", 1: "6!"}
    assert reasons == {0: "stop", 1: "stop"}


def test_too_many_choices_are_refused(start, engine):
    reply = start(max_choices=2).chat(n=3)
    assert (reply.status, reply.error["param"]) == (400, "n")
    assert engine.calls == []


def test_the_finish_reason_is_that_of_the_model(live, engine):
    engine.script = lambda call: [{"text_output": "a", "finish_reason": "length"}]
    assert live.chat().json["choices"][0]["finish_reason"] == "length"
    assert live.chat(stream=True).events[-2]["choices"][0]["finish_reason"] == "length"


def test_a_model_without_finish_reason_reached_its_limit(live, engine):
    assert live.chat(max_tokens=2).json["choices"][0]["finish_reason"] == "length"
    assert live.chat(max_tokens=3).json["choices"][0]["finish_reason"] == "stop"
    assert (
        live.chat(max_tokens=2, stream=True).events[-2]["choices"][0]["finish_reason"] == "length"
    )


def test_log_probabilities_have_the_form_of_openai(live, engine):
    token = {
        "5": {"logprob": -0.1, "rank": 2, "decoded_token": "He"},
        "6": {"logprob": -0.05, "rank": 1, "decoded_token": "é"},
    }
    engine.script = lambda call: [{"text_output": "He", "logprobs": json.dumps([token])}]
    content = live.chat(logprobs=True, top_logprobs=2).json["choices"][0]["logprobs"]["content"]
    assert content[0]["token"] == "He"
    assert [each["token"] for each in content[0]["top_logprobs"]] == ["é", "He"]
    assert content[0]["top_logprobs"][0]["bytes"] == [195, 169]
    assert engine.calls[0].sampling["logprobs"] == 2
    events = live.chat(logprobs=True, stream=True).events
    assert events[1]["choices"][0]["logprobs"]["content"][0]["top_logprobs"] == []


def test_content_parts_are_joined(live, engine):
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    live.chat(messages=[{"role": "developer", "content": "s"}, {"role": "user", "content": parts}])
    assert engine.calls[0].prompt == "<system>s<user>a\nb<assistant>"


def test_the_last_message_can_be_continued(live, engine):
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Once upon"},
    ]
    live.chat(messages=messages, continue_final_message=True)
    assert engine.calls[0].prompt == "<user>Hi<assistant>Once upon"


@pytest.mark.parametrize(
    ("members", "param", "text"),
    [
        ({"messages": []}, "messages", "length"),
        ({"messages": "x"}, "messages", "array"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role", "king"),
        ({"temperature": 3}, "temperature", "less than or equal to 2"),
        ({"n": 0}, "n", "greater than or equal to 1"),
        ({"top_logprobs": 2}, "top_logprobs", "`logprobs` is True"),
        ({"stream_options": {}}, "stream_options", "when `stream` is True"),
        ({"response_format": {"type": "json_schema"}}, "response_format", "json_schema.schema"),
        ({"tool_choice": "required"}, "tool_choice", "tools to be provided"),
        ({"tools": [TOOL]}, "tools", "tool parser"),
        ({"tools": [TOOL], "tool_choice": "auto"}, "tools", "openai.tool_parser"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}},
            "tool_choice",
            "'f' has not been passed",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages",
            "only text message is supported, but got image_url",
        ),
    ],
)
def test_an_invalid_request_names_the_member(live, engine, members, param, text):
    reply = live.chat(**members)
    assert reply.status == 400
    assert reply.error["type"] == "invalid_request_error"
    assert reply.error["param"] == param
    assert text in reply.error["message"]
    assert engine.calls == []


def test_a_model_that_cannot_restrict_its_output_refuses_schemas(start, engine):
    engine.add("story", VLLM.replace("vllm", "python"))
    live = start()
    for members in (
        {"response_format": {"type": "json_object"}},
        {"tools": [TOOL], "tool_choice": "required"},
    ):
        reply = live.chat(**members)
        assert reply.status == 400
        assert "structured_output" in reply.error["message"]


def test_a_schema_reaches_the_model(live, engine):
    schema = {"type": "object"}
    live.chat(
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    )
    assert json.loads(engine.calls[0].sampling["structured_outputs"]) == {"json": schema}
    live.chat(response_format={"type": "json_object"})
    assert json.loads(engine.calls[1].sampling["structured_outputs"]) == {"json_object": True}
    live.chat(response_format={"type": "text"})
    assert "structured_outputs" not in engine.calls[2].sampling


def test_tools_are_called(start, engine):
    template = "{{ tools | tojson }}{{ messages | tojson }}"
    live = start(models={"story": {"chat_template": template, "tool_parser": "hermes"}})
    engine.script = lambda call: tokens("Let me see. " + CALL)
    done = live.client.chat.completions.create(
        model="story", messages=[{"role": "user", "content": "Hi"}], tools=[TOOL]
    )
    choice = done.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Let me see. "
    called = choice.message.tool_calls[0]
    assert (called.type, called.function.name) == ("function", "get_weather")
    assert json.loads(called.function.arguments) == {"city": "Paris"}
    assert json.loads(engine.calls[0].prompt.partition("[{")[0] or "[]") == []
    assert '"name": "get_weather"' in engine.calls[0].prompt
    # The next turn has the result of the tool. The template gets the arguments as an object.
    live.client.chat.completions.create(
        model="story",
        messages=[
            {"role": "user", "content": "Hi"},
            choice.message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": called.id, "content": "sunny"},
        ],
        tools=[TOOL],
    )
    assert '"arguments": {"city": "Paris"}' in engine.calls[1].prompt
    assert called.id in engine.calls[1].prompt


def test_tool_calls_are_streamed(start, engine):
    live = start(models={"story": {"chat_template": TEMPLATE, "tool_parser": "hermes"}})
    engine.script = lambda call: tokens(CALL)
    deltas = [
        each["choices"][0]["delta"]["tool_calls"][0]
        for each in live.chat(stream=True, tools=[TOOL]).events[:-1]
        if "tool_calls" in each["choices"][0]["delta"]
    ]
    assert deltas[0]["function"] == {"name": "get_weather", "arguments": ""}
    assert deltas[0]["id"].startswith("call_")
    assert len(deltas) > 3
    written = "".join(each["function"]["arguments"] for each in deltas)
    assert json.loads(written) == {"city": "Paris"}
    assert live.chat(stream=True, tools=[TOOL]).events[-2]["choices"][0]["finish_reason"] == (
        "tool_calls"
    )


def test_a_chosen_function_is_called_with_the_schema_of_its_parameters(live, engine):
    engine.script = lambda call: tokens('{"city": "Rome"}')
    choice = {"type": "function", "function": {"name": "get_weather"}}
    done = live.chat(tools=[TOOL], tool_choice=choice).json["choices"][0]
    assert done["message"]["tool_calls"][0]["function"] == {
        "name": "get_weather",
        "arguments": '{"city": "Rome"}',
    }
    assert done["finish_reason"] == "stop"
    guide = json.loads(engine.calls[0].sampling["structured_outputs"])
    assert guide == {"json": TOOL["function"]["parameters"]}


def test_a_required_call_may_be_any_function(live, engine):
    engine.script = lambda call: tokens('[{"name": "get_weather", "parameters": {"city": "Rome"}}]')
    done = live.chat(tools=[TOOL], tool_choice="required", parallel_tool_calls=False).json
    choice = done["choices"][0]
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"city": "Rome"}'
    assert choice["finish_reason"] == "tool_calls"
    schema = json.loads(engine.calls[0].sampling["structured_outputs"])["json"]
    assert schema["maxItems"] == 1
    assert schema["items"]["anyOf"][0]["properties"]["name"]["enum"] == ["get_weather"]


def test_tools_with_the_choice_none_are_no_part_of_the_prompt(live, engine):
    engine.script = lambda call: [CALL]
    choice = live.chat(tools=[TOOL], tool_choice="none").json["choices"][0]
    assert choice["message"]["content"] == CALL
    assert "get_weather" not in engine.calls[0].prompt


def test_a_tool_call_that_never_ends_is_cut_off(start, engine):
    live = start(
        models={"story": {"chat_template": TEMPLATE, "tool_parser": "hermes"}},
        max_tool_call_bytes=1000,
    )

    def endless(call):
        yield '<tool_call>{"name": "f", "arguments": {"a": "'
        while not call.request.cancelled:
            yield "A" * 100

    engine.script = endless
    events = live.chat(stream=True, tools=[TOOL]).events
    assert events[-2]["choices"][0]["finish_reason"] == "length"
    assert engine.cancelled.wait(30)
    assert len(events) < 100


def test_reasoning_is_separate_from_the_content(start, engine):
    live = start(models={"story": {"chat_template": TEMPLATE, "reasoning_parser": "think"}})
    engine.script = lambda call: tokens("<think>why</think>\nthus")
    message = live.chat().json["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("why", "thus")
    deltas = [each["choices"][0]["delta"] for each in live.chat(stream=True).events[:-1]]
    assert "".join(each.get("reasoning_content", "") for each in deltas) == "why"
    assert "".join(each.get("content", "") for each in deltas) == "thus"


def test_an_error_of_the_model_is_an_error_of_the_api(live, engine):
    engine.script = lambda call: [InvalidArgument("Error generating stream: too long")]
    for stream in (False, True):
        reply = live.chat(stream=stream)
        assert reply.status == 400
        assert reply.error["message"] == "Error generating stream: too long"


def test_an_error_in_a_stream_is_an_event(live, engine):
    engine.script = lambda call: ["Hello", Internal("the engine died")]
    reply = live.chat(stream=True)
    assert reply.status == 200
    assert reply.events[-2]["error"]["message"] == "the engine died"
    assert reply.events[-2]["error"]["type"] == "server_error"
    assert reply.events[-1] == "[DONE]"


def test_a_model_with_an_input_per_parameter_gets_tensors(start, engine):
    engine.add("story", TENSORS)
    live = start()
    assert live.chat(max_tokens=5, stop=["a", "b"], temperature=0.25, seed=3).status == 200
    request = engine.calls[0].request
    inputs = request.inputs
    assert (inputs["text_input"].shape, inputs["max_tokens"].shape) == ((1, 1), (1, 1))
    assert inputs["max_tokens"].numpy().tolist() == [[5]]
    assert inputs["stop_words"].strings() == [b"a", b"b"]
    assert inputs["stop_words"].shape == (1, 2)
    assert inputs["temperature"].numpy().tolist() == [[0.25]]
    assert dict(request.parameters) == {"seed": 3}


def test_a_parameter_that_the_model_does_not_read_is_refused(start, engine):
    engine.add("story", TENSORS)
    engine.read = frozenset()
    reply = start().chat(seed=3)
    assert (reply.status, reply.error["param"]) == (400, "seed")
    assert "has no input 'seed'" in reply.error["message"]


def test_usage_is_null_if_the_model_counts_nothing(start, engine):
    engine.add("story", TENSORS)
    live = start()
    assert live.chat().json["usage"] is None
    assert (
        live.chat(stream=True, stream_options={"include_usage": True}).events[-2]["usage"] is None
    )
