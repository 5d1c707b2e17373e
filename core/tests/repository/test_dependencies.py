from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.repository.dependencies import (
    Member,
    circle,
    circle_refusal,
    found_members,
    is_ensemble,
    member_names,
    refusal,
)
from tritonpy_protos.model_config_pb2 import ModelConfig


def ensemble(*steps: tuple[str, int]) -> ModelConfig:
    config = ModelConfig(name="e", platform="ensemble")
    for model, version in steps:
        config.ensemble_scheduling.step.add(model_name=model, model_version=version)
    return config


def refused(config, **members):
    return refusal("e", config, {name: name for name in members}, members)


def test_what_has_steps_is_an_ensemble():
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
            ("nobody", "here", None),
        ],
    )
    def test_its_own_namespace_comes_first_and_otherwise_only_one_may_be_meant(self, name, namespace, key):
        found = found_members(ensemble((name, -1)), namespace, self.KNOWN)
        assert found == ({} if key is None else {name: key})


class TestRefusal:
    def test_nothing_stands_against_members_that_serve(self):
        assert refused(ensemble(("a", -1), ("a", 3), ("b", 1)), a=Member([1, 3]), b=Member([1])) == ""

    def test_all_missing_models_are_named(self):
        text = "ensemble e contains models that are not available or ambiguous: b, a"
        assert refused(ensemble(("b", -1), ("c", -1), ("a", -1)), c=Member([1])) == text

    def test_a_member_without_a_version(self):
        assert refused(ensemble(("a", -1)), a=Member()) == "ensemble 'e' depends on 'a' which has no loaded version."

    def test_a_member_that_failed_to_load(self):
        text = "ensemble 'e' depends on 'a' which has no loaded version. Model 'a' loading failed with error: broken"
        assert refused(ensemble(("a", -1)), a=Member(failure="broken")) == text

    def test_a_member_that_failed_to_load_anew_and_still_serves_will_do(self):
        assert refused(ensemble(("a", -1)), a=Member([1], failure="broken")) == ""

    def test_a_member_that_is_an_ensemble_without_its_own(self):
        text = "ensemble 'e' depends on 'a' which is not valid. Model 'a' failed with error: lacks b"
        assert refused(ensemble(("a", -1)), a=Member(invalid="lacks b")) == text

    def test_a_version_that_does_not_serve(self):
        text = "ensemble 'e' depends on 'a' whose required version 2 is not loaded."
        assert refused(ensemble(("a", -1), ("a", 2)), a=Member([1, 3])) == text

    def test_a_step_without_a_version_asks_for_none_that_there_is_and_is_told_what_to_write(self):
        text = "ensemble 'e' depends on 'a' whose required version 0 is not loaded."
        assert (
            refused(ensemble(("a", 0)), a=Member([1]))
            == f"{text} (its step gives no model_version: -1 is the newest one)"
        )


class TestCircle:
    NEEDS = {"a": ["b", "x"], "b": ["c"], "c": ["a"], "x": [], "alone": ["alone"], "above": ["a"]}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("start", "way"),
        [("a", ["a", "b", "c"]), ("b", ["b", "c", "a"]), ("alone", ["alone"]), ("x", []), ("above", [])],
    )
    def test_the_way_back_to_the_start_is_found_and_no_other_circle_holds_it_up(self, start, way):
        assert circle(start, lambda key: self.NEEDS[key]) == way

    @given(st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), max_size=4), min_size=8, max_size=8))
    def test_a_way_is_one(self, needs):
        names = {str(key): [str(each) for each in targets] for key, targets in needs.items()}
        for start in names:
            way = circle(start, lambda key: names[key])
            reached, todo = set(), [start]
            while todo:
                for each in names[todo.pop()]:
                    if each not in reached:
                        reached.add(each)
                        todo.append(each)
            assert bool(way) == (start in reached)
            assert all(then in names[before] for before, then in zip(way, [*way[1:], *way[:1]], strict=True))

    @pytest.mark.parametrize(
        ("key", "way", "said"),
        [
            ("c1", ["c1", "c2", "c3"], "c3 -> ... -> c2 -> c3"),
            ("c2", ["c2", "c3", "c1"], "c1 -> ... -> c3 -> c1"),
            ("c3", ["c3", "c1", "c2"], "c3 -> ... -> c2 -> c3"),
            ("two1", ["two1", "two2"], "two1 -> ... -> two2 -> two1"),
            ("self", ["self"], "self -> ... -> self -> self"),
        ],
    )
    def test_it_is_told_as_triton_tells_it(self, key, way, said):
        assert circle_refusal(key, way) == f"circular dependency between ensembles: {said}"
