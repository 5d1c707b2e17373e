from __future__ import annotations

import numpy as np
import pytest

from tritonpy_backend_transformer.continuation import Hypothesis, Prompt
from tritonpy_backend_transformer.model_folder import read_folder

from .fakes import text
from .tiny_models import END, TOKENS, token_ids_of


@pytest.fixture
def tokenizer(decoder):
    return read_folder(decoder[0]).tokenizer


def fed(one, token_ids):
    return [one.add(number, -0.5) for number in token_ids]


def test_tokens_are_in_the_next_delta(tokenizer):
    one = text(tokenizer=tokenizer)
    assert fed(one, token_ids_of("a€")) == [False] * 4
    delta = one.take_delta()
    assert (delta.text, [choice.token_id for choice in delta.choices], delta.finish) == (
        "a€",
        token_ids_of("a€"),
        None,
    )
    assert (one.take_delta().text, one.unsent_count, one.has_delta) == ("", 0, False)
    assert one.log_prob == pytest.approx(-2.0)


def test_the_end_token_ends_a_text_and_is_not_part_of_it(tokenizer):
    one = text(tokenizer=tokenizer)
    assert fed(one, [*token_ids_of("ab"), END]) == [False, False, True]
    assert (one.take_delta().text, one.finish, len(one.token_ids)) == ("ab", "stop", 2)


def test_the_limit_ends_a_text(tokenizer):
    one = text(tokenizer=tokenizer, max_tokens=2)
    assert fed(one, token_ids_of("ab")) == [False, True]
    assert (one.take_delta().text, one.finish, one.remaining) == ("ab", "length", 0)


def test_the_finish_reason_of_a_text_without_positions_is_context_length(tokenizer):
    one = text(tokenizer=tokenizer, max_tokens=2, limited_by_context=True)
    fed(one, token_ids_of("ab"))
    assert one.finish == "context_length"
    found = text(tokenizer=tokenizer, max_tokens=2, limited_by_context=True, beam_width=2)
    found.add_hypothesis(Hypothesis(token_ids_of("a"), -1.0, ended=False))
    assert found.finish == "context_length"


def test_a_stop_string_across_tokens_ends_a_text_and_is_omitted(tokenizer):
    one = text(tokenizer=tokenizer, stop=("lo w",))
    returned = []
    for number in token_ids_of("hello wo"):
        one.add(number, None)
        returned.append(one.take_delta().text)
        if one.finish:
            break
    assert "".join(returned) == "hel"
    assert one.finish == "stop"


def test_held_back_text_is_returned_if_the_text_ends_otherwise(tokenizer):
    one = text(tokenizer=tokenizer, stop=("lo w",), max_tokens=5)
    fed(one, token_ids_of("hello"))
    assert (one.take_delta().text, one.finish) == ("hello", "length")


def test_an_incomplete_character_is_returned_at_the_end(tokenizer):
    one = text(tokenizer=tokenizer, max_tokens=2)
    fed(one, token_ids_of("a€")[:2])
    assert one.take_delta().text == "a\N{REPLACEMENT CHARACTER}"


def test_stop_tokens_end_a_text_after_min_tokens(tokenizer):
    [stop] = token_ids_of("b")
    one = text(tokenizer=tokenizer, stop_token_ids=(stop,), min_tokens=2)
    assert fed(one, [stop, stop, stop]) == [False, False, True]
    assert one.take_delta().text == "bb"


def test_the_end_token_may_be_ignored(tokenizer):
    one = text(tokenizer=tokenizer, ignore_eos=True, max_tokens=3)
    assert fed(one, [END, *token_ids_of("ab")]) == [False, False, True]
    assert (one.take_delta().text, one.finish) == ("ab", "length")


def test_without_a_tokenizer_each_token_is_a_delta():
    one = text()
    assert (one.add(77, None), one.has_delta, one.take_delta().text) == (False, True, "")


def test_a_text_of_a_beam_search_is_added_as_a_whole(tokenizer):
    one = text(tokenizer=tokenizer, beam_width=2, stop=("c",))
    one.add_hypothesis(Hypothesis(token_ids_of("abcd"), -3.0, ended=True))
    assert (one.take_delta().text, one.finish, one.log_prob) == ("ab", "stop", -3.0)
    other = text(tokenizer=tokenizer, beam_width=2)
    other.add_hypothesis(Hypothesis(token_ids_of("ab"), -1.0, ended=False))
    assert (other.take_delta().text, other.finish) == ("ab", "length")


def test_the_sampler_may_choose_another_token_than_the_library():
    scores = np.full(len(TOKENS), -50.0, np.float32)
    scores[7], scores[9] = 1.0, 0.9
    one = text(temperature=1.0, seed=4, max_tokens=40)
    ended = [one.add_from_scores(7, scores, None) for _ in range(40)]
    assert set(one.token_ids) == {7, 9}
    assert ended[:-1] == [number != 7 for number in one.token_ids[:-1]]
    assert ended[-1]
    again = text(temperature=1.0, seed=4, max_tokens=40)
    for _ in range(40):
        again.add_from_scores(7, scores, None)
    assert again.token_ids == one.token_ids


def test_the_most_probable_tokens_are_recorded_if_requested():
    scores = np.zeros(len(TOKENS), np.float32)
    scores[[4, 8]] = 3.0, 2.0
    one = text(logprobs=2)
    one.add_from_scores(4, scores, -0.25)
    [choice] = one.take_delta().choices
    assert (choice.token_id, choice.log_prob) == (4, -0.25)
    assert [number for number, _ in choice.others] == [4, 8]


def test_the_length_of_a_prompt_counts_the_requests_tokens():
    assert Prompt(["a", "b"]).length == 2
    assert Prompt(["a"], ["x", "y", "z"]).length == 3
