from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_config.dependencies import (
    MemberState,
    cycle_error,
    find_cycle,
    is_ensemble,
    member_error,
    member_names,
    resolve_members,
)
from tritonpy_protos.model_config_pb2 import ModelConfig


def ensemble(*steps: tuple[str, int]) -> ModelConfig:
    config = ModelConfig(name="e", platform="ensemble")
    for model, version in steps:
        config.ensemble_scheduling.step.add(model_name=model, model_version=version)
    return config


def refused(config, **members):
    return member_error("e", config, {name: name for name in members}, members)


def test_a_model_with_ensemble_scheduling_is_an_ensemble():
    assert is_ensemble(ensemble(("a", -1)))
    assert not is_ensemble(ModelConfig(name="m", backend="python"))


def test_each_member_is_named_once_in_the_order_of_the_steps():
    assert member_names(ensemble(("b", -1), ("a", 1), ("b", 2))) == ["b", "a"]


class TestFound:
    KNOWN = {"one": ["one"], "both": ["here::both", "there::both"], "across": ["there::across"]}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("name", "namespace", "key"),
        [
            ("one", "", "one"),
            ("both", "here", "here::both"),
            ("both", "there", "there::both"),
            ("across", "here", "there::across"),
            ("both", "elsewhere", None),
            ("missing", "here", None),
        ],
    )
    def test_the_own_namespace_is_preferred_and_other_names_must_be_unambiguous(
        self, name, namespace, key
    ):
        found = resolve_members(ensemble((name, -1)), namespace, self.KNOWN)
        assert found == ({} if key is None else {name: key})


class TestRefusal:
    def test_ready_members_give_no_error(self):
        assert (
            refused(
                ensemble(("a", -1), ("a", 3), ("b", 1)), a=MemberState([1, 3]), b=MemberState([1])
            )
            == ""
        )

    def test_all_missing_models_are_named(self):
        text = "ensemble e contains models that are not available or ambiguous: b, a"
        assert refused(ensemble(("b", -1), ("c", -1), ("a", -1)), c=MemberState([1])) == text

    def test_a_member_without_a_version(self):
        assert (
            refused(ensemble(("a", -1)), a=MemberState())
            == "ensemble 'e' depends on 'a' which has no loaded version."
        )

    def test_a_member_that_failed_to_load(self):
        text = "ensemble 'e' depends on 'a' which has no loaded version. Model 'a' loading failed with error: broken"
        assert refused(ensemble(("a", -1)), a=MemberState(failure="broken")) == text

    def test_a_member_that_failed_to_reload_and_still_serves_is_sufficient(self):
        assert refused(ensemble(("a", -1)), a=MemberState([1], failure="broken")) == ""

    def test_a_member_that_is_an_invalid_ensemble(self):
        text = (
            "ensemble 'e' depends on 'a' which is not valid. Model 'a' failed with error: lacks b"
        )
        assert refused(ensemble(("a", -1)), a=MemberState(invalid_reason="lacks b")) == text

    def test_a_version_that_does_not_serve(self):
        text = "ensemble 'e' depends on 'a' whose required version 2 is not loaded."
        assert refused(ensemble(("a", -1), ("a", 2)), a=MemberState([1, 3])) == text

    def test_the_error_for_a_step_without_a_version_has_a_hint(self):
        text = "ensemble 'e' depends on 'a' whose required version 0 is not loaded."
        assert (
            refused(ensemble(("a", 0)), a=MemberState([1]))
            == f"{text} (its step has no model_version: -1 is the newest one)"
        )


class TestCycle:
    NEEDS = {"a": ["b", "x"], "b": ["c"], "c": ["a"], "x": [], "alone": ["alone"], "above": ["a"]}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("start", "cycle"),
        [
            ("a", ["a", "b", "c"]),
            ("b", ["b", "c", "a"]),
            ("alone", ["alone"]),
            ("x", []),
            ("above", []),
        ],
    )
    def test_a_cycle_through_the_start_is_found_despite_other_cycles(self, start, cycle):
        assert find_cycle(start, lambda key: self.NEEDS[key]) == cycle

    @given(
        st.dictionaries(
            st.integers(0, 7), st.lists(st.integers(0, 7), max_size=4), min_size=8, max_size=8
        )
    )
    def test_a_found_cycle_is_valid(self, needs):
        names = {str(key): [str(each) for each in targets] for key, targets in needs.items()}
        for start in names:
            cycle = find_cycle(start, lambda key: names[key])
            reached, todo = set(), [start]
            while todo:
                for each in names[todo.pop()]:
                    if each not in reached:
                        reached.add(each)
                        todo.append(each)
            assert bool(cycle) == (start in reached)
            assert all(
                then in names[before]
                for before, then in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True)
            )

    @pytest.mark.parametrize(
        ("key", "cycle", "expected"),
        [
            ("c1", ["c1", "c2", "c3"], "c3 -> ... -> c2 -> c3"),
            ("c2", ["c2", "c3", "c1"], "c1 -> ... -> c3 -> c1"),
            ("c3", ["c3", "c1", "c2"], "c3 -> ... -> c2 -> c3"),
            ("two1", ["two1", "two2"], "two1 -> ... -> two2 -> two1"),
            ("self", ["self"], "self -> ... -> self -> self"),
        ],
    )
    def test_the_error_has_tritons_text(self, key, cycle, expected):
        assert cycle_error(key, cycle) == f"circular dependency between ensembles: {expected}"
