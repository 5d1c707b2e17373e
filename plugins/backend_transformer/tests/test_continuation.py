from __future__ import annotations

import numpy as np
import pytest

from tritonpy_backend_transformer.continuation import Hypothesis, Prompt
from tritonpy_backend_transformer.folder import read_folder

from .listening import text
from .tiny_models import END, TOKENS, numbers_of


@pytest.fixture
def tokenizer(decoder):
    return read_folder(decoder[0]).tokenizer


def fed(one, numbers):
    return [one.add(number, -0.5) for number in numbers]


def test_tokens_become_news(tokenizer):
    one = text(tokenizer=tokenizer)
    assert fed(one, numbers_of("a€")) == [False] * 4
    news = one.news()
    assert (news.text, [choice.number for choice in news.choices], news.finish) == ("a€", numbers_of("a€"), None)
    assert (one.news().text, one.unread, one.has_news) == ("", 0, False)
    assert one.log_prob == pytest.approx(-2.0)


def test_the_end_token_ends_a_text_and_is_no_part_of_it(tokenizer):
    one = text(tokenizer=tokenizer)
    assert fed(one, [*numbers_of("ab"), END]) == [False, False, True]
    assert (one.news().text, one.finish, len(one.numbers)) == ("ab", "stop", 2)


def test_the_limit_ends_a_text(tokenizer):
    one = text(tokenizer=tokenizer, max_tokens=2)
    assert fed(one, numbers_of("ab")) == [False, True]
    assert (one.news().text, one.finish, one.left) == ("ab", "length", 0)


def test_a_text_that_ends_where_the_model_has_no_position_left_says_so(tokenizer):
    one = text(tokenizer=tokenizer, max_tokens=2, limited_by_context=True)
    fed(one, numbers_of("ab"))
    assert one.finish == "context_length"
    found = text(tokenizer=tokenizer, max_tokens=2, limited_by_context=True, beam_width=2)
    found.take(Hypothesis(numbers_of("a"), -1.0, ended=False))
    assert found.finish == "context_length"


def test_a_stop_string_over_several_tokens_ends_a_text_and_never_shows(tokenizer):
    one = text(tokenizer=tokenizer, stop=("lo w",))
    told = []
    for number in numbers_of("hello wo"):
        one.add(number, None)
        told.append(one.news().text)
        if one.finish:
            break
    assert "".join(told) == "hel"
    assert one.finish == "stop"


def test_what_was_held_back_comes_where_a_text_ends_otherwise(tokenizer):
    one = text(tokenizer=tokenizer, stop=("lo w",), max_tokens=5)
    fed(one, numbers_of("hello"))
    assert (one.news().text, one.finish) == ("hello", "length")


def test_the_first_bytes_of_a_character_come_where_the_text_ends(tokenizer):
    one = text(tokenizer=tokenizer, max_tokens=2)
    fed(one, numbers_of("a€")[:2])
    assert one.news().text == "a\N{REPLACEMENT CHARACTER}"


def test_other_tokens_may_end_a_text_but_not_before_it_is_long_enough(tokenizer):
    [stop] = numbers_of("b")
    one = text(tokenizer=tokenizer, stop_token_ids=(stop,), min_tokens=2)
    assert fed(one, [stop, stop, stop]) == [False, False, True]
    assert one.news().text == "bb"


def test_the_end_token_may_be_ignored(tokenizer):
    one = text(tokenizer=tokenizer, ignore_eos=True, max_tokens=3)
    assert fed(one, [END, *numbers_of("ab")]) == [False, False, True]
    assert (one.news().text, one.finish) == ("ab", "length")


def test_without_a_tokenizer_each_token_is_news():
    one = text()
    assert (one.add(77, None), one.has_news, one.news().text) == (False, True, "")


def test_a_text_of_a_search_comes_whole(tokenizer):
    one = text(tokenizer=tokenizer, beam_width=2, stop=("c",))
    one.take(Hypothesis(numbers_of("abcd"), -3.0, ended=True))
    assert (one.news().text, one.finish, one.log_prob) == ("ab", "stop", -3.0)
    other = text(tokenizer=tokenizer, beam_width=2)
    other.take(Hypothesis(numbers_of("ab"), -1.0, ended=False))
    assert (other.news().text, other.finish) == ("ab", "length")


def test_a_lot_of_its_own_may_choose_another_token_than_the_library():
    scores = np.full(len(TOKENS), -50.0, np.float32)
    scores[7], scores[9] = 1.0, 0.9
    one = text(temperature=1.0, seed=4, max_tokens=40)
    ended = [one.look(7, scores, None) for _ in range(40)]
    assert set(one.numbers) == {7, 9}
    assert ended[:-1] == [number != 7 for number in one.numbers[:-1]]
    assert ended[-1]
    again = text(temperature=1.0, seed=4, max_tokens=40)
    for _ in range(40):
        again.look(7, scores, None)
    assert again.numbers == one.numbers


def test_the_most_probable_tokens_are_told_where_somebody_wants_them():
    scores = np.zeros(len(TOKENS), np.float32)
    scores[[4, 8]] = 3.0, 2.0
    one = text(logprobs=2)
    one.look(4, scores, -0.25)
    [choice] = one.news().choices
    assert (choice.number, choice.log_prob) == (4, -0.25)
    assert [number for number, _ in choice.others] == [4, 8]


def test_a_prompt_counts_what_came_in():
    assert Prompt(["a", "b"]).length == 2
    assert Prompt(["a"], ["x", "y", "z"]).length == 3
