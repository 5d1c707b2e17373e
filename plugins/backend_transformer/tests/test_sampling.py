from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.sampling import (
    Sampling,
    select_known,
    update_from_json,
    update_sampling,
)


def test_by_default_the_most_probable_token_is_chosen():
    assert not Sampling().is_random


@pytest.mark.parametrize(
    "values",
    [{"temperature": 0.7}, {"top_k": 5}, {"top_p": 0.9}, {"temperature": "1", "top_k": -1}],
)
def test_these_parameters_enable_sampling(values):
    assert update_sampling(Sampling(), values).is_random


@pytest.mark.parametrize(
    "values", [{"temperature": 0, "top_p": 0.5}, {"top_k": 1, "temperature": 2}, {"beam_width": 3}]
)
def test_these_parameters_disable_sampling(values):
    assert not update_sampling(Sampling(), values).is_random


def test_alternative_names():
    found = update_sampling(
        Sampling(),
        {"max_new_tokens": 5, "random_seed": 7, "stop_words": ["x"], "num_beams": 2, "end_id": 3},
    )
    assert found == Sampling(max_tokens=5, seed=7, stop=("x",), beam_width=2, stop_token_ids=(3,))


def test_later_values_override_earlier_ones():
    first = update_from_json(
        Sampling(temperature=1.0), '{"temperature": "0.5", "max_tokens": 3, "seed": null}', "where"
    )
    assert first == Sampling(temperature=0.5, max_tokens=3)
    assert update_sampling(first, {"max_tokens": 4}).max_tokens == 4


def test_select_known():
    assert select_known(["temperature", "user", "stop_words", "min_p"]) == [
        "temperature",
        "stop_words",
        "min_p",
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"heat": 1}, "unknown sampling parameter 'heat', known are: max_tokens, "),
        (
            {"presence_penalty": 0.5},
            "'presence_penalty' is not supported by CTranslate2: leave it out",
        ),
        ({"min_tokens": 30}, "'min_tokens' (30) is more than 'max_tokens' (16)"),
        (
            {"n": 2},
            "'n' of 2 needs sampling ('temperature') or an equally wide beam ('beam_width')",
        ),
        ({"n": 3, "beam_width": 2}, "'n' (3) is more than 'beam_width' (2)"),
        ({"beam_width": 2, "temperature": 1}, "a beam search is not random"),
        ({"beam_width": 2, "logprobs": 2}, "a beam search returns the probability of a text"),
        ({"top_p": 0}, "'top_p' must be a number of more than 0 and at most 1, not '0'"),
    ],
)
def test_invalid_values_are_rejected(values, text):
    with pytest.raises(InvalidArgument) as caught:
        update_sampling(Sampling(), values)
    assert text in caught.value.message


@pytest.mark.parametrize(
    "values",
    [
        {"presence_penalty": 0.0},
        {"frequency_penalty": "0"},
        {"best_of": 1},
        {"use_beam_search": False},
    ],
)
def test_neutral_values_of_unsupported_parameters_are_accepted(values):
    assert update_sampling(Sampling(), values) == Sampling()


@pytest.mark.parametrize(
    ("text", "why"), [("{", "is not valid JSON"), ("[]", "must be a JSON object")]
)
def test_other_json_is_rejected(text, why):
    with pytest.raises(InvalidArgument) as caught:
        update_from_json(Sampling(), text, "sampling_parameters")
    assert f"'sampling_parameters' {why}" in caught.value.message
