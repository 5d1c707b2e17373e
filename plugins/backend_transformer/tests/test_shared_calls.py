from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_backend_transformer.shared_calls import (
    CallTimes,
    call_options,
    can_join,
    select_compatible,
    should_join,
)

from .fakes import text


def can_share(one, other):
    return select_compatible(one, [other], 8) == [other]


def test_texts_with_equal_options_share_a_call():
    assert can_share(text(), text(4, seed=3, max_tokens=9, stop=("x",)))
    assert can_share(text(temperature=0.5, top_p=0.9), text(temperature=0.5, top_p=0.9))


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
def test_texts_with_different_options_do_not_share_a_call(sampling):
    assert not can_share(text(), text(**sampling))
    if "logprobs" not in sampling:
        assert can_share(text(**sampling), text(**sampling))


@pytest.mark.parametrize("sampling", [{"temperature": 0.5, "seed": 1}, {"logprobs": 2}])
def test_a_text_that_needs_scores_runs_alone(sampling):
    assert not can_share(text(**sampling), text(**sampling))


@pytest.mark.parametrize(
    "sampling", [{"repetition_penalty": 1.5}, {"no_repeat_ngram_size": 2}, {"beam_width": 2}]
)
def test_options_that_depend_on_history_need_equal_lengths(sampling):
    assert not can_share(text(3, **sampling), text(4, **sampling))
    assert not can_join(text(**sampling))


def test_lengths_may_differ_by_half_of_the_remaining_tokens():
    assert can_share(text(10, max_tokens=40), text(30, max_tokens=40))
    assert not can_share(text(10, max_tokens=40), text(31, max_tokens=40))
    assert not can_share(text(1, max_tokens=40), text(2, max_tokens=40))


def test_no_more_texts_than_the_free_places_are_selected():
    others = [text() for _ in range(5)]
    assert select_compatible(text(), others, 2) == others[:2]
    assert select_compatible(text(), others, 0) == []
    assert select_compatible(text(), others, -1) == []


def test_the_library_gets_no_sampling_options_of_a_seeded_text():
    shared = call_options(text(temperature=1.0, seed=1, repetition_penalty=2.0))
    assert (shared.is_random, shared.repetition_penalty, shared.top_k, shared.length) == (
        False,
        1.0,
        1,
        0,
    )


def test_call_times_are_smoothed():
    call_times = CallTimes()
    call_times.add_steps(8, 0.8)
    assert call_times.step == pytest.approx(0.1)
    call_times.read(10, 0.6)
    assert call_times.token == pytest.approx(0.05)
    call_times.add_steps(1, 0.2)
    assert call_times.step == pytest.approx(0.125)


def test_texts_join_if_they_gain_more_than_the_running_texts_lose():
    call_times = CallTimes(token=0.001, step=0.02)
    # 0.4 s to read again, for four texts; 4 s to wait.
    running = [text(100, max_tokens=200) for _ in range(4)]
    assert should_join(running, 3, call_times, since=1.0)
    assert should_join(running, 1, call_times, since=1.0)
    assert not should_join([text(100, max_tokens=20) for _ in range(4)], 1, call_times, since=1.0)
    assert should_join([text(100, max_tokens=20) for _ in range(4)], 5, call_times, since=1.0)


def test_a_call_runs_at_least_as_long_as_its_restart_costs():
    call_times = CallTimes(token=0.001, step=0.02)
    running = [text(100, max_tokens=200) for _ in range(4)]
    assert not should_join(running, 9, call_times, since=0.39)
    assert should_join(running, 9, call_times, since=0.41)


def test_generated_tokens_of_an_encoder_decoder_are_read_step_by_step():
    call_times = CallTimes(token=0.0, step=0.02)
    running = [text(0, source=10, max_tokens=100)]
    for _ in range(60):
        running[0].add(5, None)
    assert not should_join(running, 1, call_times, since=10)  # repeat 60 steps, or wait 40
    assert should_join(running, 2, call_times, since=10)


def test_no_text_joins_before_call_times_are_measured():
    assert not should_join([text()], 9, CallTimes(), since=1)


@given(
    st.lists(st.integers(2, 500), min_size=1, max_size=20), st.integers(2, 500), st.integers(1, 300)
)
def test_selected_texts_differ_in_length_by_at_most_half_of_the_remaining_tokens(
    lengths, first, most
):
    found = select_compatible(
        text(first, max_tokens=most), [text(length, max_tokens=most) for length in lengths], 99
    )
    assert all(abs(each.length - first) <= most // 2 for each in found)
