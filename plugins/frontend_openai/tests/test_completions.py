from __future__ import annotations

import json

import pytest

from .scripted_engine import VLLM


def test_the_openai_client_completes(live, engine):
    done = live.client.completions.create(model="story", prompt="Once")
    assert (done.choices[0].text, done.choices[0].finish_reason) == ("Hello world", "stop")
    assert done.usage is not None
    assert done.usage.total_tokens == 9
    assert engine.calls[0].prompt == "Once"
    assert engine.calls[0].sampling == {"max_tokens": 16}


def test_the_openai_client_streams(live):
    with live.client.completions.create(
        model="story", prompt="Once", stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)
    assert [each.choices[0].text for each in chunks[:-1]] == ["Hello", " world", ""]
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.total_tokens == 9


def test_each_prompt_has_its_choices(live, engine):
    engine.script = lambda call: [call.prompt, str(call.sampling.get("seed", ""))]
    choices = live.complete(prompt=["a", "b"], n=2, seed=5).json["choices"]
    assert [each["text"] for each in choices] == ["a5", "a6", "b5", "b6"]
    assert [each["index"] for each in choices] == [0, 1, 2, 3]
    usage = live.complete(prompt=["a", "b"], n=2).json["usage"]
    assert usage == {"prompt_tokens": 14, "completion_tokens": 8, "total_tokens": 22}


def test_the_prompt_is_part_of_the_text_with_echo(live):
    assert live.complete(echo=True).json["choices"][0]["text"] == "OnceHello world"
    events = live.complete(echo=True, stream=True).events[:-1]
    assert [each["choices"][0]["text"] for each in events] == ["Once", "Hello", " world", ""]


def test_token_ids_are_a_prompt_of_models_that_take_them(live, engine):
    refused = live.complete(prompt=[1, 2, 3])
    assert (refused.status, refused.error["param"]) == (400, "prompt")
    engine.add(
        "story", VLLM + 'input { name: "input_ids" data_type: TYPE_INT32 dims: -1 optional: true }'
    )
    engine.infer = lambda request: (
        found.append(request)
        or request.respond(engine._response(request, {"text_output": "x"}, count=1, final=True))
    )
    found = []
    assert live.complete(prompt=[1, 2, 3]).status == 200
    assert live.complete(prompt=[[1], [2, 3]]).status == 200
    assert [each.inputs["input_ids"].numpy().tolist() for each in found] == [[1, 2, 3], [1], [2, 3]]


def test_log_probabilities_have_offsets(live, engine):
    def token(text):
        return {
            "text_output": text,
            "logprobs": json.dumps([{"1": {"logprob": -1.0, "rank": 1, "decoded_token": text}}]),
        }

    engine.script = lambda call: [token("He"), token("y")]
    events = live.complete(logprobs=1, stream=True).events
    assert [each["choices"][0]["logprobs"]["text_offset"] for each in events[:2]] == [[0], [2]]
    assert engine.calls[0].sampling["logprobs"] == 1


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"echo": True, "logprobs": 1}, "echo"),
        ({"logprobs": 6}, "logprobs"),
        ({"max_tokens": -1}, "max_tokens"),
    ],
)
def test_an_invalid_request_names_the_member(live, members, param):
    reply = live.complete(**members)
    assert (reply.status, reply.error["param"]) == (400, param)
