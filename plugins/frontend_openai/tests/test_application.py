from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from tritonpy.auth import Verb

from .conftest import WAIT_S

CHAT = "/v1/chat/completions"


def test_a_key_is_required(guarded, engine):
    reply = guarded.chat()
    assert (reply.status, reply.error["type"]) == (401, "authentication_error")
    assert reply.headers["www-authenticate"] == 'Bearer realm="tritonpy"'
    assert guarded.call("GET", "/v1/models").status == 401
    assert guarded.call("POST", "/v1/models/story/unload").status == 401
    assert engine.calls == []


def test_the_key_of_the_openai_client_is_a_bearer_token(guarded, engine, authorizer):
    guarded.client.chat.completions.create(
        model="story", messages=[{"role": "user", "content": "Hi"}]
    )
    assert authorizer.checks == [(Verb.INFER, "story")]
    assert engine.calls[0].request.principal.name == "anna"


def test_a_model_without_right_is_forbidden_whether_it_exists_or_not(guarded):
    headers = {"Authorization": "Bearer k"}
    for model in ("other", "nothing"):
        reply = guarded.chat(headers, model=model)
        assert (reply.status, reply.error["type"]) == (403, "permission_error")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", CHAT, 405),
        ("POST", "/v1/models", 405),
        ("GET", "/v1/models/story/load", 405),
        ("GET", "/v1/unknown", 404),
        ("GET", "/", 404),
        ("GET", "/health", 200),
        ("GET", "/health/live", 200),
        ("GET", "/ping", 200),
    ],
)
def test_methods_and_paths(live, method, path, status):
    reply = live.call(method, path)
    assert reply.status == status
    if status == 405:
        assert reply.headers["allow"] == ("POST" if path != "/v1/models" else "GET")


def test_the_request_id_of_the_client_is_kept(live, engine):
    reply = live.chat({"X-Request-Id": "abc"}, n=2)
    assert reply.headers["x-request-id"] == "abc"
    assert [each.request.id for each in engine.calls] == ["abc", "abc-1"]
    assert len(live.chat({"X-Request-Id": "x" * 1000}).headers["x-request-id"]) == 36


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff",
        b'{"model": 5}',
        b'{"model": "story"}',
        b"[" * 100_000,
        b'{"model": "story", "messages": [{"role": "user", "content": ' + b"[" * 100_000,
        b'{"model": "story", "messages": [{"role": "user"}], "tools": [{"function": {"name": "f", "parameters": '
        + b'{"a":' * 5000
        + b"1"
        + b"}" * 5000
        + b"}}]}",
        b'{"model": "\\ud800", "messages": [{"role": "user", "content": "\\ud800"}]}',
    ],
)
def test_a_malformed_body_is_an_error(live, engine, body):
    reply = live.call("POST", CHAT, body)
    assert reply.status in {400, 404}
    assert reply.error["message"]
    assert engine.calls == []


JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats()
    | strategies.text(max_size=5),
    lambda each: strategies.lists(each, max_size=3)
    | strategies.dictionaries(strategies.text(max_size=5), each, max_size=3),
    max_leaves=6,
)  # fmt: skip
MEMBERS = strategies.sampled_from(
    [
        "messages", "prompt", "temperature", "n", "stop", "seed", "tools", "tool_choice", "stream",
        "stream_options", "response_format", "logit_bias", "max_tokens", "logprobs", "top_logprobs",
        "functions", "function_call", "chat_template_kwargs", "stop_token_ids", "top_k",
    ]
)  # fmt: skip


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    members=strategies.dictionaries(MEMBERS, JSON, max_size=4),
    path=strategies.sampled_from([CHAT, "/v1/completions"]),
)
def test_any_json_gets_a_response_or_a_clear_error(live, engine, members, path):
    body = {"model": "story", "messages": [{"role": "user", "content": "x"}], "prompt": "x"}
    reply = live.call("POST", path, json.dumps(body | members).encode())
    assert reply.status in {200, 400}, reply.body
    if reply.status == 400:
        assert reply.error["message"]


# A valid body for each further call; the values of its members are replaced by any JSON.
VALID = {
    "/v1/messages": {"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]},
    "/v1/messages/count_tokens": {"messages": [{"role": "user", "content": "x"}]},
    "/v1/responses": {"input": "x"},
    "/tokenize": {"prompt": "x"},
    "/detokenize": {"tokens": [1]},
    "/rerank": {"query": "x", "documents": ["y"]},
    "/score": {"text_1": "x", "text_2": ["y"]},
}
NAMES = sorted(
    {name for body in VALID.values() for name in body}
    | {"system", "tools", "tool_choice", "thinking", "stop_sequences", "text", "reasoning"}
    | {"instructions", "previous_response_id", "metadata", "store", "stream", "top_n"}
)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    path=strategies.sampled_from(sorted(VALID)),
    members=strategies.dictionaries(strategies.sampled_from(NAMES), JSON, max_size=3),
    role=JSON,
    content=JSON,
)
def test_any_json_gets_a_response_or_a_clear_error_from_the_further_calls(
    live, path, members, role, content
):
    body = {"model": "story", **VALID[path], **members}
    if "messages" not in members and "messages" in VALID[path]:
        body["messages"] = [{"role": role, "content": content}, *VALID[path]["messages"]]
    reply = live.call("POST", path, json.dumps(body).encode())
    assert reply.status in {200, 400, 404}, reply.body
    if reply.status != 200:
        assert reply.error["message"]


def test_a_request_while_the_server_stops_is_refused(live):
    live.frontend._application.draining = True
    reply = live.chat()
    assert reply.status == 503
    assert "stopping" in reply.error["message"]


def test_an_unexpected_error_has_an_id_and_no_details(live, engine, caplog):
    engine.infer = lambda request: 1 / 0
    reply = live.chat()
    assert (reply.status, reply.error["type"]) == (500, "server_error")
    assert "division" not in reply.error["message"]
    assert "division" in caplog.text


def test_a_full_request_memory_is_503(live):
    live.memory.limit = live.memory._shared = 1
    reply = live.chat(user="x" * 300_000)
    assert reply.status == 503


def test_a_chunked_body_has_the_same_limit(start):
    import http.client

    live = start(max_body_bytes=1000)
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=WAIT_S)
    connection.request("POST", CHAT, iter([b"x" * 600, b"x" * 600]), encode_chunked=True,
                       headers={"Transfer-Encoding": "chunked"})  # fmt: skip
    response = connection.getresponse()
    assert response.status == 413
    connection.close()
