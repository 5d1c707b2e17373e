from __future__ import annotations

import json

import pytest

from tritonpy_bench.generation.connection import TimedExchange
from tritonpy_bench.generation.replies import read_reply


def exchange(*parts, status=200, error=""):
    done = TimedExchange(10)
    done.sent_ns, done.ended_ns, done.status, done.error = 1, 99, status, error
    done.parts = list(parts)
    return done


def event(value):
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def delta(**members):
    return event({"choices": [{"delta": members}]})


def test_texts_have_the_time_of_their_last_byte():
    whole = delta(content="b")
    reply = read_reply(
        exchange((10, delta(role="assistant", content="")), (20, delta(content="a") + whole[:9]),
                 (30, whole[9:]), (40, event(b"[DONE]"))),
        streams=True,
    )  # fmt: skip
    assert reply.texts == [(20, "a"), (30, "b")]
    assert (reply.text, reply.error) == ("ab", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"choices": [{"text": "x"}]}, "x"),
        ({"choices": [{"delta": {"reasoning_content": "hm"}}]}, "hm"),
        ({"text_output": "y"}, "y"),
        ({"choices": [{"delta": {}}]}, ""),
        ({"choices": []}, ""),
    ],
)
def test_the_forms_of_parts(value, text):
    assert read_reply(exchange((5, event(value))), streams=True).text == text


def test_usage_is_read_wherever_it_is():
    usage = {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    reply = read_reply(
        exchange((5, delta(content="a")), (6, event({"choices": [], "usage": usage}))), streams=True
    )
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (3, 4, 2)
    document = {
        "choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}],
        "usage": usage,
    }
    reply = read_reply(exchange((5, json.dumps(document).encode())), streams=False)
    assert (reply.texts, reply.finish_reason, reply.output_tokens) == ([(99, "ab")], "stop", 4)


@pytest.mark.parametrize(
    ("done", "text"),
    [
        (exchange(error="the server closed the connection"), "the server closed the connection"),
        (exchange((1, b'{"error": {"message": "busy"}}'), status=503), "503 busy"),
        (exchange((1, b'{"detail": "no"}'), status=400), "400 no"),
        (exchange((1, b"<html>"), status=502), "502 <html>"),
        (exchange((1, event({"error": {"message": "broke"}}))), "broke"),
        (exchange((1, event({"error": "broke"}))), "broke"),
        (exchange((1, event(b"nonsense"))), "unknown form"),
        (exchange((1, event({"choices": [3]}))), "unknown form"),
    ],
)
def test_errors(done, text):
    assert text in read_reply(done, streams=True).error
