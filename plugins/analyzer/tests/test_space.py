from __future__ import annotations

import pytest

from tritonpy_analyzer.space import (
    BATCH,
    BATCHING,
    DELAY,
    INSTANCES,
    Limits,
    apply_settings,
    make_space,
)
from tritonpy_config.tuning import DEFAULT_SETTING, SearchDimension, thread_counts

CONFIG = {
    "name": "m",
    "max_batch_size": 6,
    "instance_group": [{"name": "m_0", "count": 2, "kind": "KIND_CPU"}],
    "dynamic_batching": {"preferred_batch_size": [4, 6], "preserve_ordering": True},
}


def space(**more):
    return make_space({"m": {**CONFIG, **more}}, {}, Limits(16, 4))


def test_the_present_configuration_is_part_of_the_space():
    made = space()
    assert made.dimensions["m", BATCH] == (1, 2, 4, 6, 8, 16)
    assert made.dimensions["m", INSTANCES] == (1, 2, 3, 4)
    assert made.dimensions["m", BATCHING] == (False, True)
    assert made.present.of("m") == {BATCH: 6, INSTANCES: 2, BATCHING: True, DELAY: 0}
    assert made.changes(made.present) == {}
    assert made.present in made.candidates(10_000, 1)


def test_a_delay_without_dynamic_batching_makes_no_other_candidate():
    made = space()
    off = made.present.with_setting("m", BATCHING, False)
    assert off.with_setting("m", DELAY, 500) == off
    every = made.candidates(10_000, 1)
    assert len(every) == len(set(every)) == 6 * 4 * (10 + 1)


def test_a_large_space_is_sampled_equally_for_equal_seeds():
    made = space()
    some = made.candidates(50, 3)
    assert some == made.candidates(50, 3)
    assert 10 < len(some) <= 50


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"max_batch_size": 0}, {BATCH, BATCHING, DELAY}),
        ({"sequence_batching": {}}, {BATCHING, DELAY}),
        ({"instance_group": [{"count": 1}, {"count": 1}]}, {INSTANCES}),
    ],
)
def test_settings_that_a_model_does_not_have_are_not_searched(more, missing):
    names = {name for _, name in space(**more).dimensions}
    assert not names & missing


def test_the_members_of_an_ensemble_are_searched_and_keep_its_batch_size():
    ensemble = {"max_batch_size": 4, "ensemble_scheduling": {"step": [{"model_name": "m"}]}}
    made = make_space({"e": ensemble, "m": CONFIG}, {}, Limits(16, 4))
    assert made.models == ("m",)
    assert min(made.dimensions["m", BATCH]) == 4


def test_backends_offer_parameters():
    offered = {"m": [SearchDimension("threads", thread_counts(6))]}
    config = {**CONFIG, "parameters": {"threads": {"string_value": "4"}}}
    made = make_space({"m": config}, offered, Limits())
    assert made.dimensions["m", "threads"] == (DEFAULT_SETTING, 1, 2, 4, 6)
    assert made.present.of("m")["threads"] == 4
    unset = apply_settings(config, {"threads": DEFAULT_SETTING})
    assert unset["parameters"] == {}
    assert apply_settings(config, {"threads": 2})["parameters"] == {
        "threads": {"string_value": "2"}
    }


def test_settings_change_a_copy_of_the_configuration_and_nothing_else():
    values = {BATCH: 4, INSTANCES: 3, BATCHING: True, DELAY: 500}
    changed = apply_settings(CONFIG, values)
    assert changed["instance_group"] == [{"name": "m_0", "count": 3, "kind": "KIND_CPU"}]
    assert changed["dynamic_batching"] == {
        "preferred_batch_size": [4],
        "preserve_ordering": True,
        "max_queue_delay_microseconds": 500,
    }
    assert CONFIG["dynamic_batching"]["preferred_batch_size"] == [4, 6]
    assert "dynamic_batching" not in apply_settings(CONFIG, {BATCHING: False})


def test_adjacent_candidates_differ_in_one_setting_by_one_step():
    made = space()
    found = {each.describe() for each in made.adjacent(made.present)}
    assert "batch 4, 2 instances, dynamic batching" in found
    assert "batch 6, 3 instances, dynamic batching" in found
    assert "batch 6, 2 instances, dynamic batching, delay 50 us" in found
    assert "batch 6, 2 instances, no dynamic batching" in found
    assert len(found) == 6
