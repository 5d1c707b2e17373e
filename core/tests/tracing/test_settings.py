from __future__ import annotations

import pytest

from tritonpy import TraceChanges
from tritonpy.errors import InvalidArgument
from tritonpy.tracing.settings import TraceRules, level_of, names_of
from tritonpy.types import TraceLevel

from .families import BOTH, rule


@pytest.fixture
def rules():
    return TraceRules(rule(TraceLevel.TIMESTAMPS, rate=10, count=5, log_frequency=2))


def values(made):
    return made.level, made.rate, made.count, made.log_frequency


def test_a_model_follows_the_server_and_the_server_its_start(rules):
    assert values(rules.find("m")) == values(rules.find("")) == (TraceLevel.TIMESTAMPS, 10, 5, 2)


def test_a_model_s_own_value_stays_while_the_others_follow(rules):
    rules.change("m", TraceChanges(rate=3))
    rules.change("", TraceChanges(rate=7, log_frequency=9))
    assert values(rules.find("m")) == (TraceLevel.TIMESTAMPS, 3, 5, 9)
    assert values(rules.find("other")) == (TraceLevel.TIMESTAMPS, 7, 5, 9)


def test_clearing_falls_back_to_the_next_wider_setting(rules):
    rules.change("m", TraceChanges(rate=3, count=1))
    rules.change("", TraceChanges(rate=7))
    rules.change("m", TraceChanges(rate=None))
    assert values(rules.find("m")) == (TraceLevel.TIMESTAMPS, 7, 1, 2)
    rules.change("", TraceChanges(rate=None))
    assert rules.find("m").rate == rules.find("").rate == 10


def test_a_model_without_own_values_is_the_server_s_rule_again(rules):
    rules.change("m", TraceChanges(rate=3))
    assert len(rules.all()) == 2
    rules.change("m", TraceChanges(rate=None))
    assert rules.find("m") is rules.find("")
    assert len(rules.all()) == 1


def test_a_change_that_names_nothing_for_a_model_makes_none(rules):
    rules.change("m", TraceChanges())
    assert rules.all() == [rules.find("")]


def test_each_change_begins_to_count_anew_but_with_what_is_still_to_come(rules):
    rules.change("", TraceChanges(rate=1, count=3))
    rules.find("").sample(continues=False)
    rules.change("", TraceChanges(log_frequency=4))
    assert rules.find("").count == 2
    assert rules.find("").chosen == 0
    rules.change("", TraceChanges(count=None))
    assert rules.find("").count == 5


@pytest.mark.parametrize("model", ["", "m"])
def test_what_could_trace_nothing_is_refused_and_changes_nothing(rules, model):
    before = values(rules.find(model))
    with pytest.raises(InvalidArgument) as refused:
        rules.change(model, TraceChanges(rate=0))
    assert refused.value.message == "Attempting to set invalid trace setting :sample rate must be non-zero"
    assert values(rules.find(model)) == before


def test_a_rate_of_zero_may_wait_for_tracing_to_be_turned_on(rules):
    rules.change("", TraceChanges(level=[], rate=0))
    with pytest.raises(InvalidArgument, match="sample rate"):
        rules.change("", TraceChanges(level=["TENSORS"]))


def test_a_mode_that_lacks_something_cannot_be_turned_on():
    rules = TraceRules(rule(TraceLevel.OFF, lack="trace file name is not given"))
    with pytest.raises(InvalidArgument) as refused:
        rules.change("", TraceChanges(level=["TIMESTAMPS"]))
    assert refused.value.message == "Attempting to set invalid trace setting :trace file name is not given"
    rules.change("", TraceChanges(rate=5))
    assert rules.find("").rate == 5


@pytest.mark.parametrize(
    ("names", "level"), [([], TraceLevel.OFF), (["TENSORS"], TraceLevel.TENSORS), (["TIMESTAMPS", "TENSORS"], BOTH)]
)
def test_levels_have_names(names, level):
    assert level_of(names) == level
    assert names_of(level) == names


def test_a_level_named_twice_is_the_same_level():
    assert level_of(["TENSORS", "TENSORS"]) == TraceLevel.TENSORS
