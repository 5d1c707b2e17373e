from __future__ import annotations

import json

import msgspec
import pytest
import tokenizers

from tritonpy_bench.generation.options import GenerationOptions
from tritonpy_bench.generation.prompts import (
    Request,
    make_requests,
    open_tokenizer,
    request_body,
)
from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.wire.address import Address


def options(**members):
    return GenerationOptions(**{"model": "m", "endpoint_type": "chat", **members})


def words(text):
    return len(text.split())


def test_prompts_have_their_lengths_and_differ():
    found = make_requests(options(input_tokens=30, output_tokens=8), 20, None)
    assert {words(each.text) for each in found} == {30}
    assert {each.output_tokens for each in found} == {8}
    assert len({each.text for each in found}) == 20
    assert found == make_requests(options(input_tokens=30, output_tokens=8), 20, None)
    assert found != make_requests(options(input_tokens=30, output_tokens=8, seed=2), 20, None)


def test_lengths_vary_around_their_mean():
    varied = options(input_tokens=50, input_tokens_stddev=10, output_tokens_stddev=5)
    found = [words(each.text) for each in make_requests(varied, 200, None)]
    assert 45 < sum(found) / len(found) < 55
    assert len(set(found)) > 10
    assert len({each.output_tokens for each in make_requests(varied, 200, None)}) > 5


def test_a_part_of_all_prompts_is_common():
    found = make_requests(options(input_tokens=40, prefix_share=0.5), 5, None)
    heads = {" ".join(each.text.split()[:20]) for each in found}
    assert len(heads) == 1
    assert {words(each.text) for each in found} == {40}
    assert len({each.text for each in found}) == 5


def test_a_tokenizer_makes_lengths_exact(tmp_path):
    letters = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, "[UNK]"))
    letters.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    letters.save(str(tmp_path / "tokenizer.json"))
    given = options(input_tokens=40, tokenizer=str(tmp_path))
    tokens_of = open_tokenizer(given, Address("h", 1))
    assert tokens_of("abc") == 3
    counts = [tokens_of(each.text) for each in make_requests(given, 10, tokens_of)]
    assert all(38 <= count <= 40 for count in counts)  # words are whole


def test_the_server_may_be_the_tokenizer(stub):
    host, port = stub.url.split(":")
    tokens_of = open_tokenizer(options(tokenizer="server"), Address(host, int(port)))
    assert tokens_of("one two three") == 3
    assert stub.requests[0][1]["model"] == "m"


@pytest.mark.parametrize("content", [None, "{"])
def test_a_tokenizer_that_cannot_be_used_is_reported(tmp_path, content):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(BadUsage, match="--tokenizer"):
        open_tokenizer(options(tokenizer=str(tmp_path)), Address("h", 1))
    with pytest.raises(BadUsage, match="/tokenize does not answer"):
        open_tokenizer(options(tokenizer="server"), Address("127.0.0.1", 1))("a")


def test_prompts_of_a_file(tmp_path):
    path = tmp_path / "prompts.jsonl"
    chat = [{"role": "user", "content": "Hi"}]
    path.write_text(
        json.dumps({"text": "a", "output_length": 3}) + "\n\n" + json.dumps({"messages": chat})
    )
    found = make_requests(options(input_file=path, output_tokens=9), 3, None)
    assert found == [Request("a", 3), Request("", 9, chat), Request("a", 3)]


@pytest.mark.parametrize(
    ("content", "schedule", "text"),
    [
        ("", False, "has no request"),
        ("{", False, "line 1 is no JSON"),
        ("[]", False, "line 1 is no object"),
        ("{}", False, 'neither "text" nor "messages"'),
        ('{"text": "a"}', True, 'no "timestamp"'),
    ],
)
def test_a_faulty_file_is_reported_with_its_line(tmp_path, content, schedule, text):
    path = tmp_path / "prompts.jsonl"
    path.write_text(content)
    with pytest.raises(BadUsage, match=text):
        make_requests(options(input_file=path, fixed_schedule=schedule), 1, None)
    with pytest.raises(BadUsage, match="--input-file"):
        make_requests(options(input_file=tmp_path / "missing"), 1, None)


@pytest.mark.parametrize(
    ("kind", "streaming", "expected"),
    [
        (
            "chat",
            True,
            {
                "messages": [{"role": "user", "content": "Hi"}],
                "stream_options": {"include_usage": True},
            },
        ),
        ("completions", False, {"prompt": "Hi", "stream": False}),
        ("embeddings", False, {"input": "Hi", "model": "m"}),
        ("generate", False, {"text_input": "Hi"}),
        ("generate_stream", False, {"text_input": "Hi", "stream": True}),
    ],
)
def test_bodies(kind, streaming, expected):
    given = options(endpoint_type=kind, streaming=streaming, extra_inputs=(("x", 1),))
    body = msgspec.json.decode(request_body(given, Request("Hi", 5)))
    assert expected.items() <= body.items()
    assert body["x"] == 1
    if kind != "embeddings":
        assert (body["max_tokens"], body["ignore_eos"]) == (5, True)


def test_the_turns_before_are_part_of_a_chat():
    earlier = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    body = msgspec.json.decode(request_body(options(), Request("c", 5), earlier))
    assert [each["content"] for each in body["messages"]] == ["a", "b", "c"]
