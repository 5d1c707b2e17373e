"""OpenAI's Responses API, with OpenAI's own client."""

from __future__ import annotations

import json
import threading
import time

import openai
import pytest

from tritonpy import Internal
from tritonpy_frontend_openai.responses.call import ResponsesCall

from .conftest import TEMPLATE, WAIT_S

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'


@pytest.fixture
def hermes(start):
    return start(models={"story": {"chat_template": TEMPLATE, "tool_parser": "hermes"}})


def eventually(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_response(live, engine):
    engine.script = lambda call: ["Good", " day", {"finish_reason": "stop"}]
    done = live.client.responses.create(
        model="story", input="Hi", instructions="Be kind", temperature=0.5, max_output_tokens=9,
        metadata={"a": "b"},
    )  # fmt: skip
    assert done.output_text == "Good day"
    assert (done.status, done.model, done.metadata) == ("completed", "story", {"a": "b"})
    assert done.usage.output_tokens == 3
    [call] = engine.calls
    assert call.prompt == "<system>Be kind<user>Hi<assistant>"
    assert call.sampling == {"temperature": 0.5, "max_tokens": 9}


def test_a_limited_response_is_incomplete(live, engine):
    engine.script = lambda call: ["Good", {"finish_reason": "length"}]
    done = live.client.responses.create(model="story", input="Hi")
    assert (done.status, done.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_a_stream_has_the_events_of_openai(live, engine):
    engine.script = lambda call: ["Good", " day", {"finish_reason": "stop"}]
    events = list(live.client.responses.create(model="story", input="Hi", stream=True))
    assert [each.type.removeprefix("response.") for each in events] == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta",
        "output_text.delta", "output_text.done", "content_part.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    assert [each.sequence_number for each in events] == list(range(len(events)))
    assert "".join(e.delta for e in events if e.type.endswith("text.delta")) == "Good day"
    assert events[6].text == events[7].part.text == "Good day"
    assert events[-1].response.output_text == "Good day"
    assert live.client.responses.retrieve(events[-1].response.id).output_text == "Good day"


def test_function_calls_in_a_document_and_in_a_stream(hermes, engine):
    engine.script = lambda call: ["Let me see. ", CALL[:30], CALL[30:], "\n"]
    options = {"model": "story", "input": "Weather?", "tools": [WEATHER]}
    message, call = hermes.client.responses.create(**options).output
    assert message.content[0].text.strip() == "Let me see."
    assert (call.type, call.name) == ("function_call", "get_weather")
    assert json.loads(call.arguments) == {"city": "Paris"}
    events = list(hermes.client.responses.create(**options, stream=True))
    kinds = [each.type for each in events]
    assert "response.function_call_arguments.delta" in kinds
    [ended] = [each for each in events if each.type == "response.function_call_arguments.done"]
    assert json.loads(ended.arguments) == {"city": "Paris"}
    assert [each.type for each in events[-1].response.output] == ["message", "function_call"]


def test_items_of_the_input_are_messages(hermes, engine):
    hermes.client.responses.create(
        model="story",
        tools=[WEATHER],
        input=[
            {"role": "developer", "content": "D"},
            {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "get_weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "Sun"},
            {"role": "user", "content": "So?"},
        ],
    )
    assert engine.calls[-1].prompt == (
        "<system>D<user>Weather?<assistant><tool>Sun<user>So?<assistant>"
    )


def test_a_schema_is_enforced(live, engine):
    engine.script = lambda call: ['{"a": 1}']
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
    live.client.responses.create(model="story", input="Hi", text={"format": form})
    guide = json.loads(engine.calls[-1].sampling["structured_outputs"])
    assert guide == {"json": {"type": "object"}}


def test_reasoning_is_an_item_of_its_own(start, engine):
    live = start(models={"story": {"chat_template": TEMPLATE, "reasoning_parser": "think"}})
    engine.script = lambda call: ["<think>Hm", "m</think>", "\n\nYes"]
    thought, message = live.client.responses.create(
        model="story", input="Hi", reasoning={"effort": "low"}
    ).output
    assert (thought.type, thought.content[0].text) == ("reasoning", "Hmm")
    assert message.content[0].text == "Yes"


def test_a_kept_response_is_continued_retrieved_and_deleted(live, engine):
    engine.script = lambda call: ["Blue"]
    responses = live.client.responses
    first = responses.create(model="story", input="A color?", instructions="Be brief")
    second = responses.create(model="story", input="Another?", previous_response_id=first.id)
    # As at OpenAI, instructions are not carried over.
    assert engine.calls[-1].prompt == "<user>A color?<assistant>Blue<user>Another?<assistant>"
    responses.create(model="story", input="More?", previous_response_id=second.id)
    assert engine.calls[-1].prompt.count("Blue") == 2
    assert responses.retrieve(first.id).output_text == "Blue"
    responses.delete(first.id)
    with pytest.raises(openai.NotFoundError, match="not found"):
        responses.retrieve(first.id)
    unkept = responses.create(model="story", input="Hi", store=False)
    with pytest.raises(openai.NotFoundError):
        responses.retrieve(unkept.id)


def test_the_oldest_responses_are_dropped_beyond_the_limits(start, engine):
    live = start(max_stored_responses=2)
    kept = [live.client.responses.create(model="story", input="Hi").id for _ in range(3)]
    with pytest.raises(openai.NotFoundError):
        live.client.responses.retrieve(kept[0])
    assert [live.client.responses.retrieve(each).id for each in kept[1:]] == kept[1:]
    small = start(max_stored_bytes=3000)
    kept = [small.client.responses.create(model="story", input="x" * 500).id for _ in range(4)]
    found = 0
    for each in kept:
        found += small.call("GET", f"/v1/responses/{each}").status == 200
    assert 0 < found < 4


def test_a_background_response_is_answered_before_the_model_does(live, engine):
    go = threading.Event()

    def script(call):
        assert go.wait(WAIT_S)
        yield "Done"

    engine.script = script
    responses = live.client.responses
    queued = responses.create(model="story", input="Hi", background=True)
    assert (queued.status, queued.output, queued.background) == ("queued", [], True)
    assert responses.retrieve(queued.id).status == "queued"
    with pytest.raises(openai.BadRequestError, match="is not complete: continue it later"):
        responses.create(model="story", input="And?", previous_response_id=queued.id)
    go.set()
    eventually(lambda: responses.retrieve(queued.id).status == "completed")
    assert responses.retrieve(queued.id).output_text == "Done"
    later = responses.create(model="story", input="And?", previous_response_id=queued.id)
    assert "Hi<assistant>Done<user>And?" in engine.calls[-1].prompt
    assert later.status == "completed"


def test_a_background_response_is_cancelled(live, engine):
    def script(call):
        while not engine.cancelled.wait(0.005):
            yield "on "

    engine.script = script
    queued = live.client.responses.create(model="story", input="Hi", background=True)
    assert live.client.responses.cancel(queued.id).status == "cancelled"
    assert engine.cancelled.wait(WAIT_S)
    eventually(lambda: live.client.responses.retrieve(queued.id).status == "cancelled")


def test_a_synchronous_response_cannot_be_cancelled(live):
    done = live.client.responses.create(model="story", input="Hi")
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        live.client.responses.cancel(done.id)


def test_a_failed_background_response_says_why(live, engine):
    engine.script = lambda call: [Internal("the engine broke")]
    queued = live.client.responses.create(model="story", input="Hi", background=True)
    eventually(lambda: live.client.responses.retrieve(queued.id).status == "failed")
    assert live.client.responses.retrieve(queued.id).error.message == "the engine broke"


def test_an_unexpected_failure_of_a_background_response_has_no_details(live, engine, monkeypatch):
    monkeypatch.setattr(ResponsesCall, "document", lambda self, pieces: 1 / 0)
    queued = live.client.responses.create(model="story", input="Hi", background=True)
    eventually(lambda: live.client.responses.retrieve(queued.id).status == "failed")
    message = live.client.responses.retrieve(queued.id).error.message
    assert message.startswith("unexpected error in the server, see error id")
    assert "division" not in message


def test_too_many_background_responses_are_refused(start, engine):
    go = threading.Event()
    engine.script = lambda call: [str(go.wait(WAIT_S))]
    live = start(max_stored_responses=1)
    first = live.client.responses.create(model="story", input="Hi", background=True)
    with pytest.raises(openai.RateLimitError, match="too many background responses"):
        live.client.responses.create(model="story", input="Hi", background=True)
    go.set()
    eventually(lambda: live.client.responses.retrieve(first.id).status == "completed")


def test_a_stopping_frontend_waits_for_background_responses(start, engine):
    go = threading.Event()
    engine.script = lambda call: [str(go.wait(WAIT_S))]
    live = start()
    live.client.responses.create(model="story", input="Hi", background=True)
    eventually(lambda: engine.calls)
    draining = threading.Thread(target=lambda: live.run(live.frontend.drain()))
    draining.start()
    assert draining.is_alive()
    go.set()
    draining.join(WAIT_S)
    assert not draining.is_alive()


def test_each_caller_finds_only_its_own_responses(guarded, engine):
    def call(key, method, path, body=None):
        return guarded.call(method, path, body, {"Authorization": f"Bearer {key}"})

    body = {"model": "story", "input": "secret"}
    name = call("k", "POST", "/v1/responses", body).json["id"]
    assert call("k", "GET", f"/v1/responses/{name}").status == 200
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel")):
        assert call("b", method, f"/v1/responses/{name}{path}").status == 404
    stolen = call("b", "POST", "/v1/responses", {**body, "previous_response_id": name})
    assert stolen.status == 404
    assert guarded.call("GET", f"/v1/responses/{name}").status == 401


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"tools": [{"type": "web_search"}]}, "'web_search' is a tool of OpenAI's servers"),
        ({"input": []}, "input has no item"),
        ({"input": [{"type": "computer_call"}]}, "items of the type 'computer_call' are unknown"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "models here take text, not input_image",
        ),
        ({"truncation": "auto"}, "truncation"),
        ({"background": True, "stream": True}, "background responses have no stream"),
        ({"background": True, "store": False}, "background responses need store"),
        ({"previous_response_id": "resp_x"}, "Response with id 'resp_x' not found."),
        ({"temperature": 9}, "temperature"),
    ],
)
def test_what_the_server_cannot_do_is_refused_by_name(live, members, text):
    reply = live.call("POST", "/v1/responses", {"model": "story", "input": "Hi", **members})
    assert reply.status in {400, 404}
    assert text in reply.error["message"]


def test_an_error_in_the_stream_is_a_failed_response(live, engine):
    engine.script = lambda call: ["Good", Internal("the engine broke")]
    events = list(live.client.responses.create(model="story", input="Hi", stream=True))
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.message == "the engine broke"
    with pytest.raises(openai.NotFoundError):
        live.client.responses.retrieve(events[-1].response.id)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/responses", 405),
        ("PUT", "/v1/responses/a", 405),
        ("GET", "/v1/responses/a/cancel", 405),
        ("GET", "/v1/responses/a/b", 404),
        ("GET", "/v1/responsesX", 404),
    ],
)
def test_other_methods_and_paths_are_refused(live, method, path, status):
    assert live.call(method, path).status == status


def test_triton_has_no_such_api(start):
    live = start(compat="triton")
    for path in ("/v1/responses", "/v1/messages", "/tokenize", "/rerank"):
        assert live.call("POST", path, {"model": "story"}).status == 404
