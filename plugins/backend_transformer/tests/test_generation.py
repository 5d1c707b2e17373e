from __future__ import annotations

import pytest

from tritonpy import InferRequest, Internal
from tritonpy_backend_transformer.continuation import Hypothesis
from tritonpy_backend_transformer.generation import Generation
from tritonpy_backend_transformer.model_folder import read_folder
from tritonpy_backend_transformer.outputs import TextFormat
from tritonpy_testing import RecordingSink, SlowClient

from .fakes import text
from .tiny_models import END, TOKENS, token_ids_of


class Model:
    name, version = "m", 1


@pytest.fixture
def begin(decoder):
    tokenizer = read_folder(decoder[0]).tokenizer

    def make(interval=1, count=1, client=None, **sampling):
        recorder = RecordingSink()
        request = (
            InferRequest("m", {}, client, 1)
            if client
            else InferRequest("m", {}, recorder.sink, 1, owner=recorder)
        )
        generation = Generation(
            request, Model, ["text_output", "finish_reason"], interval,
            TextFormat("", tokenizer, TOKENS),
        )  # fmt: skip
        generation.texts += [
            text(listener=generation, tokenizer=tokenizer, **sampling) for _ in range(count)
        ]
        return generation, request, recorder

    return make


def feed(generation, *token_ids, place=0):
    for number in token_ids:
        generation.texts[place].add(number, None)
        generation.on_progress()


def sent(recorder, request):
    responses = recorder.responses(request)
    assert all(response.error is None for response in responses)
    return [
        ([each.decode() for each in response.outputs[0].strings()], response.final)
        for response in responses
    ]


def test_a_stream_has_a_response_per_token_and_ends_with_the_final_flag(begin):
    generation, request, recorder = begin()
    feed(generation, *token_ids_of("a€"), END)
    assert sent(recorder, request) == [(["a"], False), (["€"], False), ([""], True)]


def test_a_response_of_a_stream_may_have_several_tokens(begin):
    generation, request, recorder = begin(interval=3)
    feed(generation, *token_ids_of("abcdefgh"), END)
    assert sent(recorder, request) == [(["abc"], False), (["def"], False), (["gh"], True)]


def test_without_a_stream_there_is_one_response(begin):
    generation, request, recorder = begin(interval=None)
    feed(generation, *token_ids_of("abc"), END)
    assert sent(recorder, request) == [(["abc"], True)]


def test_a_response_has_all_texts_of_its_request(begin):
    generation, request, recorder = begin(count=2)
    feed(generation, *token_ids_of("a"), place=0)
    feed(generation, *token_ids_of("x"), END, place=1)
    feed(generation, *token_ids_of("b"), END, place=0)
    assert sent(recorder, request) == [
        (["a", ""], False),
        (["", "x"], False),
        (["b", ""], False),
        (["", ""], True),
    ]


def test_a_slow_client_gets_pending_text_in_one_response(begin):
    client = SlowClient(1)
    generation, _, _ = begin(client=client)
    feed(generation, *token_ids_of("abc"))
    assert client.most == 1
    assert client.fetch().outputs[0].strings() == [b"a"]
    feed(generation, *token_ids_of("d"))
    assert client.fetch().outputs[0].strings() == [b"bcd"]
    feed(generation, *token_ids_of("efg"), END)
    assert [response.outputs[0].strings() for response in client.fetch_all()] == [[b"e"], [b"fg"]]
    assert client.most == 2


def test_a_beam_search_has_one_response(begin):
    generation, request, recorder = begin(count=2, beam_width=2)
    generation.on_search_results(
        [
            Hypothesis(token_ids_of("ab"), -1.0, ended=True),
            Hypothesis(token_ids_of("c"), -2.0, ended=False),
        ]
    )
    assert sent(recorder, request) == [(["ab", "c"], True)]


def test_a_cancelled_request_gets_an_error(begin):
    generation, request, recorder = begin()
    feed(generation, *token_ids_of("a"))
    request.cancelled = True
    assert not generation.is_active()
    generation.texts[0].cancel()
    generation.on_progress()
    assert recorder.responses(request)[-1].error.message == "Request cancelled"


def test_an_error_ends_all_texts_and_is_sent_once(begin):
    generation, request, recorder = begin(count=2)
    texts = list(generation.texts)
    generation.on_error(Internal("it broke"))
    generation.on_error(Internal("it broke again"))
    generation.on_progress()
    [response] = recorder.responses(request)
    assert response.error.message == "it broke"
    assert [each.finish for each in texts] == ["cancelled", "cancelled"]
