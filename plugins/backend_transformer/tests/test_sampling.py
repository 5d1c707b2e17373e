from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.sampling import Sampling, known, with_json, with_values


def test_without_a_word_the_most_probable_token_is_taken():
    assert not Sampling().draws


@pytest.mark.parametrize(
    "values", [{"temperature": 0.7}, {"top_k": 5}, {"top_p": 0.9}, {"temperature": "1", "top_k": -1}]
)
def test_tokens_are_drawn_where_somebody_asks(values):
    assert with_values(Sampling(), values).draws


@pytest.mark.parametrize(
    "values", [{"temperature": 0, "top_p": 0.5}, {"top_k": 1, "temperature": 2}, {"beam_width": 3}]
)
def test_tokens_are_not_drawn_where_one_is_left(values):
    assert not with_values(Sampling(), values).draws


def test_other_names_mean_the_same():
    found = with_values(
        Sampling(), {"max_new_tokens": 5, "random_seed": 7, "stop_words": ["x"], "num_beams": 2, "end_id": 3}
    )
    assert found == Sampling(max_tokens=5, seed=7, stop=("x",), beam_width=2, stop_token_ids=(3,))


def test_json_and_what_comes_later_win():
    first = with_json(Sampling(temperature=1.0), '{"temperature": "0.5", "max_tokens": 3, "seed": null}', "where")
    assert first == Sampling(temperature=0.5, max_tokens=3)
    assert with_values(first, {"max_tokens": 4}).max_tokens == 4


def test_known_names_are_told_from_others():
    assert known(["temperature", "user", "stop_words", "min_p"]) == ["temperature", "stop_words", "min_p"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"heat": 1}, "there is no sampling parameter 'heat', there are: max_tokens, "),
        ({"presence_penalty": 0.5}, "'presence_penalty' is something that CTranslate2 cannot do: leave it out"),
        ({"min_tokens": 30}, "'min_tokens' (30) is more than 'max_tokens' (16)"),
        ({"n": 2}, "'n' of 2 needs tokens that are drawn ('temperature') or as wide a beam ('beam_width')"),
        ({"n": 3, "beam_width": 2}, "'n' (3) is more than 'beam_width' (2)"),
        ({"beam_width": 2, "temperature": 1}, "a beam search draws nothing"),
        ({"beam_width": 2, "logprobs": 2}, "a beam search tells the probability of a text"),
        ({"top_p": 0}, "'top_p' must be a number of more than 0 and at most 1, not '0'"),
    ],
)
def test_what_cannot_be_is_refused(values, text):
    with pytest.raises(InvalidArgument) as caught:
        with_values(Sampling(), values)
    assert text in caught.value.message


@pytest.mark.parametrize(
    "values", [{"presence_penalty": 0.0}, {"frequency_penalty": "0"}, {"best_of": 1}, {"use_beam_search": False}]
)
def test_what_the_library_lacks_may_say_nothing(values):
    assert with_values(Sampling(), values) == Sampling()


@pytest.mark.parametrize(("text", "why"), [("{", "is no JSON"), ("[]", "must be a JSON object")])
def test_what_is_no_json_object_is_refused(text, why):
    with pytest.raises(InvalidArgument) as caught:
        with_json(Sampling(), text, "sampling_parameters")
    assert f"'sampling_parameters' {why}" in caught.value.message
