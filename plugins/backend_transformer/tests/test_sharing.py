from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_backend_transformer.sharing import Pace, can_join, fitting, shared_options, worth_joining

from .listening import text


def together(one, other):
    return fitting(one, [other], 8) == [other]


def test_texts_of_equal_options_run_together():
    assert together(text(), text(4, seed=3, max_tokens=9, stop=("x",)))
    assert together(text(temperature=0.5, top_p=0.9), text(temperature=0.5, top_p=0.9))


@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 0.5},
        {"repetition_penalty": 1.5},
        {"no_repeat_ngram_size": 2},
        {"min_tokens": 2},
        {"ignore_eos": True},
        {"logprobs": 1},
        {"beam_width": 2},
    ],
)
def test_texts_of_other_options_do_not(sampling):
    assert not together(text(), text(**sampling))
    if "logprobs" not in sampling:
        assert together(text(**sampling), text(**sampling))


@pytest.mark.parametrize("sampling", [{"temperature": 0.5, "seed": 1}, {"logprobs": 2}])
def test_a_text_whose_steps_are_looked_at_runs_alone(sampling):
    assert not together(text(**sampling), text(**sampling))


@pytest.mark.parametrize("sampling", [{"repetition_penalty": 1.5}, {"no_repeat_ngram_size": 2}, {"beam_width": 2}])
def test_what_depends_on_earlier_tokens_needs_prompts_of_one_length(sampling):
    assert not together(text(3, **sampling), text(4, **sampling))
    assert not can_join(text(**sampling))


def test_lengths_may_differ_as_far_as_is_short_beside_what_is_to_come():
    assert together(text(10, max_tokens=40), text(30, max_tokens=40))
    assert not together(text(10, max_tokens=40), text(31, max_tokens=40))
    assert not together(text(1, max_tokens=40), text(2, max_tokens=40))


def test_no_more_than_there_is_room_for_are_taken():
    others = [text() for _ in range(5)]
    assert fitting(text(), others, 2) == others[:2]
    assert fitting(text(), others, 0) == []
    assert fitting(text(), others, -1) == []


def test_greedy_penalties_of_a_seed_do_not_reach_the_library():
    shared = shared_options(text(temperature=1.0, seed=1, repetition_penalty=2.0))
    assert (shared.draws, shared.repetition_penalty, shared.top_k, shared.length) == (False, 1.0, 1, 0)


def test_the_pace_follows_what_is_measured():
    pace = Pace()
    pace.stepped(8, 0.8)
    assert pace.step == pytest.approx(0.1)
    pace.read(10, 0.6)
    assert pace.token == pytest.approx(0.05)
    pace.stepped(1, 0.2)
    assert pace.step == pytest.approx(0.125)


def test_joining_pays_where_the_newcomers_would_wait_longer_than_the_others_are_held_up():
    pace = Pace(token=0.001, step=0.02)
    running = [text(100, max_tokens=200) for _ in range(4)]  # 0.4 s to read again, for four; 4 s to wait
    assert worth_joining(running, 3, pace, since=1.0)
    assert worth_joining(running, 1, pace, since=1.0)
    assert not worth_joining([text(100, max_tokens=20) for _ in range(4)], 1, pace, since=1.0)
    assert worth_joining([text(100, max_tokens=20) for _ in range(4)], 5, pace, since=1.0)


def test_a_call_runs_at_least_as_long_as_it_costs_to_begin_anew():
    pace = Pace(token=0.001, step=0.02)
    running = [text(100, max_tokens=200) for _ in range(4)]
    assert not worth_joining(running, 9, pace, since=0.39)
    assert worth_joining(running, 9, pace, since=0.41)


def test_what_an_encoder_decoder_generated_is_read_step_by_step():
    pace = Pace(token=0.0, step=0.02)
    running = [text(0, source=10, max_tokens=100)]
    for _ in range(60):
        running[0].add(5, None)
    assert not worth_joining(running, 1, pace, since=10)  # 60 steps again, and 40 to wait
    assert worth_joining(running, 2, pace, since=10)


def test_nothing_joins_before_the_pace_is_known():
    assert not worth_joining([text()], 9, Pace(), since=1)


@given(st.lists(st.integers(2, 500), min_size=1, max_size=20), st.integers(2, 500), st.integers(1, 300))
def test_whoever_fits_to_the_first_reads_no_more_steps_than_half_of_what_may_come(lengths, first, most):
    found = fitting(text(first, max_tokens=most), [text(length, max_tokens=most) for length in lengths], 99)
    assert all(abs(each.length - first) <= most // 2 for each in found)
