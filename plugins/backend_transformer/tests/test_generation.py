from __future__ import annotations

import pytest

from tritonpy import InferRequest, Internal
from tritonpy.testing import SlowClient, Witness
from tritonpy_backend_transformer.continuation import Hypothesis
from tritonpy_backend_transformer.folder import read_folder
from tritonpy_backend_transformer.generation import Generation
from tritonpy_backend_transformer.outputs import Wording

from .listening import text
from .tiny_models import END, TOKENS, numbers_of


class Model:
    name, version = "m", 1


@pytest.fixture
def begin(decoder):
    tokenizer = read_folder(decoder[0]).tokenizer

    def make(interval=1, count=1, client=None, **sampling):
        witness = Witness()
        request = InferRequest("m", {}, client, 1) if client else InferRequest("m", {}, witness.sink, 1, owner=witness)
        generation = Generation(
            request, Model, ["text_output", "finish_reason"], interval,
            Wording("", tokenizer, TOKENS),
        )  # fmt: skip
        generation.texts += [text(ear=generation, tokenizer=tokenizer, **sampling) for _ in range(count)]
        return generation, request, witness

    return make


def feed(generation, *numbers, place=0):
    for number in numbers:
        generation.texts[place].add(number, None)
        generation.heard()


def told(witness, request):
    answers = witness.answers(request)
    assert all(answer.error is None for answer in answers)
    return [([each.decode() for each in answer.outputs[0].strings()], answer.final) for answer in answers]


def test_a_stream_is_answered_for_each_token_and_ends_with_the_final_flag(begin):
    generation, request, witness = begin()
    feed(generation, *numbers_of("a€"), END)
    assert told(witness, request) == [(["a"], False), (["€"], False), ([""], True)]


def test_a_stream_may_be_answered_for_several_tokens(begin):
    generation, request, witness = begin(interval=3)
    feed(generation, *numbers_of("abcdefgh"), END)
    assert told(witness, request) == [(["abc"], False), (["def"], False), (["gh"], True)]


def test_without_a_stream_there_is_one_answer(begin):
    generation, request, witness = begin(interval=None)
    feed(generation, *numbers_of("abc"), END)
    assert told(witness, request) == [(["abc"], True)]


def test_an_answer_has_all_texts_of_its_request(begin):
    generation, request, witness = begin(count=2)
    feed(generation, *numbers_of("a"), place=0)
    feed(generation, *numbers_of("x"), END, place=1)
    feed(generation, *numbers_of("b"), END, place=0)
    assert told(witness, request) == [(["a", ""], False), (["", "x"], False), (["b", ""], False), (["", ""], True)]


def test_a_slow_reader_gets_what_waited_in_one_answer(begin):
    client = SlowClient(1)
    generation, _, _ = begin(client=client)
    feed(generation, *numbers_of("abc"))
    assert client.most == 1
    assert client.fetch().outputs[0].strings() == [b"a"]
    feed(generation, *numbers_of("d"))
    assert client.fetch().outputs[0].strings() == [b"bcd"]
    feed(generation, *numbers_of("efg"), END)
    assert [answer.outputs[0].strings() for answer in client.fetch_all()] == [[b"e"], [b"fg"]]
    assert client.most == 2


def test_a_search_is_answered_at_once(begin):
    generation, request, witness = begin(count=2, beam_width=2)
    generation.found([Hypothesis(numbers_of("ab"), -1.0, ended=True), Hypothesis(numbers_of("c"), -2.0, ended=False)])
    assert told(witness, request) == [(["ab", "c"], True)]


def test_a_cancelled_request_is_answered_as_that(begin):
    generation, request, witness = begin()
    feed(generation, *numbers_of("a"))
    request.cancelled = True
    assert not generation.wanted()
    generation.texts[0].cancel()
    generation.heard()
    assert witness.answers(request)[-1].error.message == "Request cancelled"


def test_a_failure_ends_all_texts_and_is_told_once(begin):
    generation, request, witness = begin(count=2)
    texts = list(generation.texts)
    generation.failed(Internal("it broke"))
    generation.failed(Internal("it broke again"))
    generation.heard()
    [answer] = witness.answers(request)
    assert answer.error.message == "it broke"
    assert [each.finish for each in texts] == ["cancelled", "cancelled"]
