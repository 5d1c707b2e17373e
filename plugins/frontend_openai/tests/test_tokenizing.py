from __future__ import annotations

import json

import pytest
import tokenizers
from google.protobuf import text_format

from .conftest import TEMPLATE

TOKENIZE = 'input { name: "tokenize_request" data_type: TYPE_STRING dims: 1 optional: true }'
PLAIN = """
backend: "python"
input { name: "text_input" data_type: TYPE_STRING dims: 1 }
output { name: "text_output" data_type: TYPE_STRING dims: 1 }
"""


def config_of(engine, name="story"):
    text = text_format.MessageToString(engine.configs[name])
    return text.replace(f'name: "{name}"\n', "", 1)


@pytest.fixture
def tokens_live(live, engine):
    """The frontend with a model that answers tokenize requests: each character is a token."""
    engine.add("story", config_of(engine) + TOKENIZE)

    def script(call):
        question = call.json["tokenize_request"]
        if "tokens" in question:
            yield json.dumps({"text": "".join(map(chr, question["tokens"]))})
        else:
            text = "^" * question["add_special_tokens"] + question["text"]
            yield json.dumps({"tokens": [ord(each) for each in text], "pieces": list(text)})

    engine.script = script
    return live


@pytest.fixture
def with_file(start, engine, tmp_path):
    """The frontend with a model that counts nothing, and with a tokenizer of words in a file."""
    words = tokenizers.models.WordLevel({"[UNK]": 0, "good": 1, "day": 2, "Hi": 3}, "[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    engine.add("plain", PLAIN, str(tmp_path))
    return start(models={"plain": {"chat_template": TEMPLATE}})


def post(live, path, **members):
    return live.call("POST", path, {"model": "story", **members})


def test_a_model_returns_its_tokens(tokens_live):
    reply = post(tokens_live, "/tokenize", prompt="Hi")
    assert reply.json == {"count": 3, "tokens": [94, 72, 105], "token_strs": None}
    plain = post(
        tokens_live, "/tokenize", prompt="Hi", add_special_tokens=False, return_token_strs=True
    )
    assert plain.json == {"count": 2, "tokens": [72, 105], "token_strs": ["H", "i"]}
    assert post(tokens_live, "/detokenize", tokens=[72, 105]).json == {"prompt": "Hi"}


def test_the_tokens_of_a_chat_are_those_of_its_prompt(tokens_live):
    chat = [{"role": "user", "content": "Hi"}]
    tokens = post(tokens_live, "/tokenize", messages=chat).json["tokens"]
    assert "".join(map(chr, tokens)) == "<user>Hi<assistant>"
    tokens = post(tokens_live, "/tokenize", messages=chat, add_generation_prompt=False).json[
        "tokens"
    ]
    assert "".join(map(chr, tokens)) == "<user>Hi"
    counted = post(tokens_live, "/v1/messages/count_tokens", messages=chat, system="S")
    assert counted.json == {"input_tokens": len("<system>S<user>Hi<assistant>")}


def test_a_tokenizer_file_answers_for_a_model_that_does_not(with_file, engine):
    reply = post(with_file, "/tokenize", model="plain", prompt="good day", return_token_strs=True)
    assert reply.json == {"count": 2, "tokens": [1, 2], "token_strs": ["good", "day"]}
    assert post(with_file, "/detokenize", model="plain", tokens=[2, 1]).json == {
        "prompt": "day good"
    }
    assert engine.calls == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_tokenizer_file_counts_for_a_model_that_does_not(with_file, engine, stream):
    engine.script = lambda call: ["good day ", "good"]
    options = {"model": "plain", "prompt": "Hi good day", "stream": stream}
    if stream:
        options["stream_options"] = {"include_usage": True}
    reply = with_file.call("POST", "/v1/completions", options)
    usage = reply.events[-2]["usage"] if stream else reply.json["usage"]
    assert usage == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}


@pytest.mark.parametrize(
    ("path", "members", "text"),
    [
        ("/tokenize", {}, "give either prompt or messages"),
        ("/tokenize", {"prompt": "a", "messages": [{"role": "user", "content": ""}]}, "either"),
        ("/tokenize", {"prompt": "a"}, "Model 'story' has no tokenizer here"),
        ("/detokenize", {"tokens": ["a"]}, "tokens"),
        ("/detokenize", {"tokens": [1], "model": "nothing"}, "Unknown model: nothing"),
    ],
)
def test_refusals(live, path, members, text):
    reply = post(live, path, **members)
    assert reply.status in {400, 404}
    assert text in reply.error["message"]


def test_a_broken_tokenizer_file_is_reported_and_does_not_stop_chats(with_file, engine, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    engine.add("plain", PLAIN, str(tmp_path))
    reply = post(with_file, "/tokenize", model="plain", prompt="a")
    assert reply.status == 500
    assert "cannot read" in reply.error["message"]
    assert with_file.chat(model="plain").status == 200
