"""With `compat: triton`, texts, bodies and strictness are those of Triton's OpenAI frontend."""

from __future__ import annotations

import pytest

from .conftest import TEMPLATE
from .scripted_engine import TENSORS, VLLM

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.fixture
def triton(start):
    return start(compat="triton")


@pytest.mark.parametrize(
    ("path", "members", "text"),
    [
        ("chat", {"model": "nothing"}, "Unknown model: nothing"),
        ("chat", {"n": 2}, "Received n=2, but only single choice (n=1) is currently supported"),
        ("chat", {"logit_bias": {"0": 0}}, "logit bias is not currently supported"),
        ("chat", {"top_logprobs": 2}, "`top_logprobs` can only be used when `logprobs` is True"),
        ("chat", {"stream_options": {"include_usage": True}},
         "`stream_options` can only be used when `stream` is True"),
        ("chat", {"tools": [TOOL]},
         "having tools in the request requires --tool-call-parser to be set"),
        ("chat", {"tools": [TOOL], "tool_choice": "auto"},
         '"auto" tool choice requires --tool-call-parser to be set'),
        ("chat", {"tool_choice": "required"},
         '"required" tool choice requires CreateChatCompletionRequest.tools to be provided'),
        ("complete", {"model": "nothing"}, "Unknown model: nothing"),
        ("complete", {"suffix": "x"}, "suffix is not currently supported"),
        ("complete", {"prompt": ""}, "prompt must be non-empty"),
        ("complete", {"prompt": ["a"]}, "only single string input is supported"),
        ("complete", {"n": 2}, "Received n=2, but only single choice (n=1) is currently supported"),
        ("complete", {"logit_bias": {"0": 0}}, "logit bias is not supported"),
        ("complete", {"best_of": 1},
         "best_of is no longer supported in vLLM backend, removed from vLLM V1 engine"),
    ],
)  # fmt: skip
def test_refusals_have_the_texts_of_triton(triton, path, members, text):
    reply = getattr(triton, path)(**members)
    assert (reply.status, reply.json) == (400, {"detail": text})


@pytest.mark.parametrize(
    "members",
    [
        {"temperature": 2.1},
        {"temperature": -0.1},
        {"max_tokens": -1},
        {"max_completion_tokens": -1},
        {"top_p": 1.1},
        {"frequency_penalty": 3},
        {"presence_penalty": -2.1},
        {"min_tokens": -1},
        {"ignore_eos": 123},
        {"unknown": 1},
        {"top_k": 1},
        {"parallel_tool_calls": True},
        {"messages": None},
    ],
)
def test_an_invalid_or_unknown_member_is_422(triton, members):
    reply = triton.chat(**members)
    assert reply.status == 422
    assert reply.json["detail"][0]["loc"][:2] == ["body", next(iter(members))]


def test_the_range_of_a_member_is_part_of_the_text(triton):
    reply = triton.chat(logprobs=True, top_logprobs=25)
    assert reply.json["detail"][0]["msg"] == "Input should be less than or equal to 20"


def test_log_probabilities_are_for_the_vllm_backend(start, engine):
    engine.add("story", TENSORS)
    triton = start(compat="triton")
    text = "logprobs are currently available only for the vLLM backend"
    assert triton.chat(logprobs=True).json == {"detail": text}
    assert triton.complete(logprobs=1).json == {"detail": text}


def test_16_tokens_are_the_default(triton, engine):
    triton.chat()
    triton.complete()
    assert [each.sampling["max_tokens"] for each in engine.calls] == [16, 16]


def test_the_response_format_is_dropped(triton, engine):
    assert triton.chat(response_format={"type": "json_object"}).status == 200
    assert "structured_outputs" not in engine.calls[0].sampling


def test_parameters_without_a_tensor_are_dropped(start, engine):
    engine.add("story", TENSORS)
    engine.read = frozenset()
    assert start(compat="triton").chat(seed=1).status == 200


def test_a_completed_text_has_the_reason_stop(triton, engine):
    engine.script = lambda call: [{"text_output": "a", "finish_reason": "length"}]
    assert triton.chat().json["choices"][0]["finish_reason"] == "stop"
    assert triton.complete().json["choices"][0]["finish_reason"] == "stop"


def test_a_required_tool_is_the_first_one(start, engine):
    engine.add("story", VLLM)
    triton = start(
        compat="triton", models={"story": {"chat_template": TEMPLATE, "tool_parser": "mistral"}}
    )
    engine.script = lambda call: ['{"a"', ": 1}"]
    choice = triton.chat(tools=[TOOL], tool_choice="required").json["choices"][0]
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert choice["finish_reason"] == "stop"


def test_an_unknown_model_is_404_where_it_is_part_of_the_path(triton):
    reply = triton.call("GET", "/v1/models/nothing")
    assert (reply.status, reply.json) == (404, {"detail": "Unknown model: nothing"})


def test_a_large_body_has_an_error_object(start):
    live = start(compat="triton", max_body_bytes=100)
    reply = live.chat(user="x" * 100)
    assert reply.status == 413
    assert reply.error["code"] == "content_too_large"
    assert set(reply.json) == {"error"}


def test_a_restricted_api_has_an_error_object(start):
    restrictions = [{"apis": ["inference"], "key": "infer-key", "value": "secret"}]
    live = start(compat="triton", restricted_apis=restrictions)
    reply = live.chat()
    assert reply.status == 401
    assert reply.json == {
        "error": {
            "message": "This API is restricted, expecting header 'infer-key' with valid value",
            "type": "authentication_error",
            "code": "invalid_auth",
        }
    }
    assert live.chat({"infer-key": "secret"}).status == 200
    assert live.call("GET", "/v1/models").status == 200


def test_health_is_that_of_the_server(triton, engine):
    assert triton.call("GET", "/health/ready").status == 200
    engine.is_ready = lambda: False
    reply = triton.call("GET", "/health/ready")
    assert (reply.status, reply.json) == (
        400,
        {"detail": "Attached inference engine is not ready for inference requests."},
    )
