from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tritonpy_backend_transformer.lot import Lot, last_of, log_probabilities, most_probable, probabilities_of, repeats
from tritonpy_backend_transformer.sampling import Sampling

SCORES = np.log(np.array([0.5, 0.25, 0.15, 0.1], np.float32))


def draws(count=2000, scores=SCORES, earlier=(), bad=(), ends=(), **sampling):
    lot = Lot(Sampling(**{"temperature": 1.0, "seed": 5, **sampling}), ends, 0, bad)
    return [lot.draw(scores, earlier) for _ in range(count)]


def test_tokens_come_as_often_as_they_are_probable():
    counts = Counter(draws())
    np.testing.assert_allclose([counts[number] / 2000 for number in range(4)], np.exp(SCORES), atol=0.04)


def test_a_seed_gives_the_same_tokens_and_another_one_others():
    assert draws(50) == draws(50)
    assert draws(50) != draws(50, seed=6)


def test_without_a_seed_nobody_knows_what_comes():
    assert draws(50, seed=None) != draws(50, seed=None)


def test_texts_of_one_request_differ():
    sampling = Sampling(temperature=1.0, seed=5)
    one, other = (Lot(sampling, (), number) for number in (0, 1))
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
def test_temperature_and_the_best_change_the_probabilities(sampling, expected):
    found = probabilities_of(SCORES.astype(np.float64), Sampling(**sampling))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_must_not_come_does_not_come():
    assert 3 not in draws(ends=(3,), min_tokens=1, max_tokens=9)
    assert 3 in draws(ends=(3,), min_tokens=1, max_tokens=9, earlier=(0,))
    assert 1 not in draws(earlier=(0, 1, 0), no_repeat_ngram_size=2)
    assert 2 not in draws(earlier=(7, 1), bad=((1, 2),))
    assert 0 not in draws(bad=((0,),))


def test_a_penalty_makes_earlier_tokens_less_probable():
    scores = np.array([2.0, 2.0, -1.0], np.float32)
    counts = Counter(draws(scores=scores, earlier=(0, 2), repetition_penalty=2.0))
    expected = np.exp([1.0, 2.0, -2.0])
    np.testing.assert_allclose([counts[number] / 2000 for number in range(3)], expected / expected.sum(), atol=0.04)


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
def test_repeats_are_known(earlier, size, found):
    assert repeats(earlier, size) == found


def test_the_last_token_of_a_run_is_known():
    assert last_of(((5,), (1, 2), (9, 1, 3)), (9, 1)) == [5, 2, 3]
    assert last_of(((9, 1, 3),), (1,)) == []


def test_log_probabilities_are_those_of_all_scores():
    np.testing.assert_allclose(log_probabilities(SCORES + 3), SCORES, atol=1e-6)
    best = most_probable(SCORES, 2)
    assert [number for number, _ in best] == [0, 1]
    assert [log for _, log in best] == pytest.approx(SCORES[:2].tolist())
