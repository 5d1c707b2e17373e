from __future__ import annotations

import pytest

from tritonpy import TraceChanges
from tritonpy.errors import InvalidArgument
from tritonpy.tracing.settings import TraceRules, level_from_names, level_names
from tritonpy.types import TraceLevel

from .families import BOTH, rule


@pytest.fixture
def rules():
    return TraceRules(rule(TraceLevel.TIMESTAMPS, rate=10, count=5, log_frequency=2))


def values(made):
    return made.level, made.rate, made.count, made.log_frequency


def test_a_model_inherits_from_the_server_and_the_server_from_its_start(rules):
    assert values(rules.find("m")) == values(rules.find("")) == (TraceLevel.TIMESTAMPS, 10, 5, 2)


def test_a_model_s_own_value_stays_while_others_are_inherited(rules):
    rules.change("m", TraceChanges(rate=3))
    rules.change("", TraceChanges(rate=7, log_frequency=9))
    assert values(rules.find("m")) == (TraceLevel.TIMESTAMPS, 3, 5, 9)
    assert values(rules.find("other")) == (TraceLevel.TIMESTAMPS, 7, 5, 9)


def test_clearing_restores_the_inherited_setting(rules):
    rules.change("m", TraceChanges(rate=3, count=1))
    rules.change("", TraceChanges(rate=7))
    rules.change("m", TraceChanges(rate=None))
    assert values(rules.find("m")) == (TraceLevel.TIMESTAMPS, 7, 1, 2)
    rules.change("", TraceChanges(rate=None))
    assert rules.find("m").rate == rules.find("").rate == 10


def test_a_model_without_own_values_uses_the_server_s_rule(rules):
    rules.change("m", TraceChanges(rate=3))
    assert len(rules.all()) == 2
    rules.change("m", TraceChanges(rate=None))
    assert rules.find("m") is rules.find("")
    assert len(rules.all()) == 1


def test_an_empty_change_creates_no_rule(rules):
    rules.change("m", TraceChanges())
    assert rules.all() == [rules.find("")]


def test_a_change_restarts_counting_with_the_remaining_count(rules):
    rules.change("", TraceChanges(rate=1, count=3))
    rules.find("").sample(continues=False)
    rules.change("", TraceChanges(log_frequency=4))
    assert rules.find("").count == 2
    assert rules.find("").chosen == 0
    rules.change("", TraceChanges(count=None))
    assert rules.find("").count == 5


@pytest.mark.parametrize("model", ["", "m"])
def test_settings_that_cannot_trace_are_refused_and_change_nothing(rules, model):
    before = values(rules.find(model))
    with pytest.raises(InvalidArgument) as refused:
        rules.change(model, TraceChanges(rate=0))
    assert refused.value.message == "Attempting to set invalid trace setting :sample rate must be non-zero"
    assert values(rules.find(model)) == before


def test_a_rate_of_zero_is_allowed_while_tracing_is_off(rules):
    rules.change("", TraceChanges(level=[], rate=0))
    with pytest.raises(InvalidArgument, match="sample rate"):
        rules.change("", TraceChanges(level=["TENSORS"]))


def test_a_mode_with_a_missing_setting_cannot_be_enabled():
    rules = TraceRules(rule(TraceLevel.OFF, missing_setting="trace file name is not given"))
    with pytest.raises(InvalidArgument) as refused:
        rules.change("", TraceChanges(level=["TIMESTAMPS"]))
    assert refused.value.message == "Attempting to set invalid trace setting :trace file name is not given"
    rules.change("", TraceChanges(rate=5))
    assert rules.find("").rate == 5


@pytest.mark.parametrize(
    ("names", "level"), [([], TraceLevel.OFF), (["TENSORS"], TraceLevel.TENSORS), (["TIMESTAMPS", "TENSORS"], BOTH)]
)
def test_levels_have_names(names, level):
    assert level_from_names(names) == level
    assert level_names(level) == names


def test_a_level_named_twice_is_the_same_level():
    assert level_from_names(["TENSORS", "TENSORS"]) == TraceLevel.TENSORS
