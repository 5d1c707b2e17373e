from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.token_sampler import (
    TokenSampler,
    last_of,
    log_probabilities,
    most_probable,
    probabilities_of,
    repeats,
)

SCORES = np.log(np.array([0.5, 0.25, 0.15, 0.1], np.float32))


def sample_tokens(count=2000, scores=SCORES, earlier=(), banned=(), end_ids=(), **sampling):
    sampler = TokenSampler(
        Sampling(**{"temperature": 1.0, "seed": 5, **sampling}), end_ids, 0, banned
    )
    return [sampler.draw(scores, earlier) for _ in range(count)]


def test_tokens_are_sampled_by_their_probabilities():
    counts = Counter(sample_tokens())
    np.testing.assert_allclose(
        [counts[number] / 2000 for number in range(4)], np.exp(SCORES), atol=0.04
    )


def test_equal_seeds_sample_equal_tokens():
    assert sample_tokens(50) == sample_tokens(50)
    assert sample_tokens(50) != sample_tokens(50, seed=6)


def test_without_a_seed_tokens_differ():
    assert sample_tokens(50, seed=None) != sample_tokens(50, seed=None)


def test_texts_of_one_request_differ():
    sampling = Sampling(temperature=1.0, seed=5)
    one, other = (TokenSampler(sampling, (), number) for number in (0, 1))
    assert [one.draw(SCORES, ()) for _ in range(50)] != [other.draw(SCORES, ()) for _ in range(50)]


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({"temperature": 0.5}, np.array([0.25, 0.0625, 0.0225, 0.01]) / 0.345),
        ({"top_k": 2}, [2 / 3, 1 / 3, 0, 0]),
        ({"top_k": 0}, [0.5, 0.25, 0.15, 0.1]),
        ({"top_p": 0.6}, [0.5, 0.25, 0, 0]),
        ({"top_p": 0.5}, [0.5, 0, 0, 0]),
    ],
)
def test_temperature_top_k_and_top_p_change_the_probabilities(sampling, expected):
    found = probabilities_of(SCORES.astype(np.float64), Sampling(**sampling))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_banned_tokens_are_not_sampled():
    assert 3 not in sample_tokens(end_ids=(3,), min_tokens=1, max_tokens=9)
    assert 3 in sample_tokens(end_ids=(3,), min_tokens=1, max_tokens=9, earlier=(0,))
    assert 1 not in sample_tokens(earlier=(0, 1, 0), no_repeat_ngram_size=2)
    assert 2 not in sample_tokens(earlier=(7, 1), banned=((1, 2),))
    assert 0 not in sample_tokens(banned=((0,),))


def test_a_penalty_makes_earlier_tokens_less_probable():
    scores = np.array([2.0, 2.0, -1.0], np.float32)
    counts = Counter(sample_tokens(scores=scores, earlier=(0, 2), repetition_penalty=2.0))
    expected = np.exp([1.0, 2.0, -2.0])
    np.testing.assert_allclose(
        [counts[number] / 2000 for number in range(3)], expected / expected.sum(), atol=0.04
    )


@pytest.mark.parametrize(
    ("earlier", "size", "found"),
    [
        ((1, 2, 1), 2, [2]),
        ((1, 2, 1), 3, []),
        ((1, 2, 3, 1, 2), 3, [3]),
        ((1, 2), 1, [1, 2]),
        ((), 1, []),
        ((1,), 0, []),
    ],
)
def test_repeats(earlier, size, found):
    assert repeats(earlier, size) == found


def test_last_of():
    assert last_of(((5,), (1, 2), (9, 1, 3)), (9, 1)) == [5, 2, 3]
    assert last_of(((9, 1, 3),), (1,)) == []


def test_log_probabilities():
    np.testing.assert_allclose(log_probabilities(SCORES + 3), SCORES, atol=1e-6)
    best = most_probable(SCORES, 2)
    assert [number for number, _ in best] == [0, 1]
    assert [log for _, log in best] == pytest.approx(SCORES[:2].tolist())
