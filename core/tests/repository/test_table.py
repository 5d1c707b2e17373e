from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tritonpy.api.engine import ModelIndex
from tritonpy.errors import InvalidArgument, NotFound, Unavailable
from tritonpy.repository.table import LAZY, NO_VERSION, UNLOADED, Listed, ModelTable, State


@dataclass(frozen=True)
class Model:
    """Stands for a loaded version."""

    name: str
    version: int


def models(*versions):
    return {version: Model("m", version) for version in versions}


@pytest.fixture
def table():
    return ModelTable()


def lines(table):
    return [(line.version, line.state, line.reason) for line in table.index("m")]


def test_versions_are_ascending_in_whatever_order_they_came(table):
    found = models(10, 2)
    table.swap("m", found)
    table.set_state("m", 1, State.LOADING)
    assert table.ready("m") == [found[2], found[10]]
    assert [version for version, _, _ in lines(table)] == ["1", "2", "10"]


def test_the_highest_ready_version_serves_who_names_none(table):
    found = models(2, 10)
    assert table.swap("m", found) == []
    assert table.find("m") is found[10]
    assert table.find("m", 2) is found[2]
    assert table.ready("m") == [found[2], found[10]]


@pytest.mark.parametrize(
    ("name", "version", "kind", "text"),
    [
        ("x", -1, InvalidArgument, "Request for unknown model: 'x' is not found"),
        ("x", 1, InvalidArgument, "Request for unknown model: 'x' is not found"),
        ("m", 9, NotFound, "Request for unknown model: 'm' version 9 is not found"),
        ("m", 2, Unavailable, "Request for unknown model: 'm' version 2 is not at ready state"),
        ("broken", -1, NotFound, "Request for unknown model: 'broken' has no available versions"),
        ("broken", NO_VERSION, NotFound, "Request for unknown model: 'broken' version 0 is not found"),
    ],
)
def test_what_does_not_serve_is_said_in_triton_s_words(table, name, version, kind, text):
    table.swap("m", models(1))
    table.set_state("m", 2, State.LOADING)
    table.explain("broken", "why")
    with pytest.raises(kind) as refused:
        table.find(name, version)
    assert type(refused.value) is kind
    assert refused.value.message == text


def test_a_swap_returns_who_served_and_leaves_them_unloading(table):
    first, second = models(1, 2), models(2, 3)
    table.swap("m", first)
    assert table.swap("m", second) == [first[1], first[2]]
    assert lines(table) == [("1", "UNLOADING", ""), ("2", "READY", ""), ("3", "READY", "")]
    table.settle("m", 1, State.UNAVAILABLE, UNLOADED)
    table.settle("m", 2, State.UNAVAILABLE, UNLOADED)
    assert lines(table) == [("1", "UNAVAILABLE", "unloaded"), ("2", "READY", ""), ("3", "READY", "")]


def test_a_version_that_failed_is_forgotten_once_the_model_loads_without_it(table):
    table.set_state("m", 2, State.UNAVAILABLE, "broken")
    table.swap("m", models(1))
    assert lines(table) == [("1", "READY", "")]


def test_a_serving_version_keeps_serving_while_its_successor_loads_and_fails(table):
    (model,) = models(1).values()
    table.swap("m", {1: model})
    table.set_state("m", 1, State.LOADING)
    table.set_state("m", 1, State.UNAVAILABLE, "broken")
    table.explain("m", "broken")
    assert table.find("m") is model
    assert lines(table) == [("1", "READY", "")]


def test_a_model_that_failed_before_its_versions_were_known_has_a_reason_and_no_version(table):
    table.explain("m", "broken")
    table.explain("m", "broken twice")
    assert table.index("m") == [ModelIndex("m", "", "UNAVAILABLE", "broken twice")]
    table.swap("m", models(1))
    assert lines(table) == [("1", "READY", "")]


def test_an_unloaded_model_is_known_and_has_no_version(table):
    table.swap("m", models(1))
    table.swap("m", {})
    with pytest.raises(NotFound, match="has no available versions"):
        table.find("m")
    with pytest.raises(Unavailable, match="not at ready state"):
        table.find("m", 1)


def test_a_model_that_nobody_tried_has_a_name_only(table):
    assert table.index("m") == [ModelIndex("m")]
    assert table.ready("m") == []


def test_everything_is_listed_by_name_and_version(table):
    for name in ("b", "a"):
        table.swap(name, {10: Model(name, 10), 9: Model(name, 9)})
    assert [(model.name, model.version) for model in table.all_ready()] == [("a", 9), ("a", 10), ("b", 9), ("b", 10)]
    assert [(name, version) for name, version, _ in table.records()] == [("a", 9), ("a", 10), ("b", 9), ("b", 10)]


def test_what_was_explained_is_taken_back():
    table = ModelTable()
    table.explain("m", "broken")
    table.retract("m")
    assert table.index("m") == [ModelIndex("m")]
    table.retract("nobody")


def test_a_version_says_more_than_what_is_taken_back():
    table = ModelTable()
    table.set_state("m", 1, State.UNAVAILABLE, "broken")
    table.retract("m")
    assert [line.reason for line in table.index("m")] == ["broken"]


def test_index_lines_have_the_name_that_clients_know():
    table = ModelTable()
    table.set_state("here::m", 1, State.LOADING)
    assert table.index("here::m", "m") == [ModelIndex("m", "1", "LOADING")]


LISTED = Listed(None, (1, 2))


def test_a_listed_model_is_known_and_not_found(table):
    table.enlist("m", "m", LISTED)
    assert lines(table) == [("1", "UNAVAILABLE", LAZY), ("2", "UNAVAILABLE", LAZY)]
    assert table.listed("m") is table.listed("m", 2) is LISTED
    assert table.listed("m", 3) is None
    assert table.listed("other") is None
    assert table.versions("m") == [1, 2]
    assert table.may_load("m")
    with pytest.raises(NotFound):
        table.find("m")


def test_a_listed_model_whose_load_failed_says_so_until_it_is_listed_again(table):
    table.set_state("m", 1, State.LOADING)
    table.enlist("m", "m", LISTED, "broken")
    assert lines(table)[0] == ("1", "UNAVAILABLE", f"{LAZY}; the last load failed: broken")
    assert not table.may_load("m")
    table.enlist("m", "m", LISTED)
    assert table.may_load("m")


def test_a_listed_model_that_is_unloaded_is_as_before_its_load(table):
    table.enlist("m", "m", LISTED)
    table.swap("m", models(1))
    assert lines(table) == [("1", "READY", ""), ("2", "UNAVAILABLE", LAZY)]
    table.swap("m", {})
    table.settle("m", 1, State.UNAVAILABLE, UNLOADED)
    assert lines(table) == [("1", "UNAVAILABLE", LAZY), ("2", "UNAVAILABLE", LAZY)]


def test_a_model_that_is_listed_no_more_is_as_if_it_never_was(table):
    table.enlist("m", "m", LISTED)
    table.strike("m")
    assert table.listed("m") is None
    assert lines(table) == [("", "", "")]


def test_the_configuration_of_a_listed_model_is_what_its_files_tell_or_it_is_roused(table):
    roused = []

    class Cold:
        rouse = staticmethod(roused.append)

    table.cold = Cold()
    table.enlist("m", "m", Listed("of its files", (1,)))
    assert table.config("m") == "of its files"
    with pytest.raises(NotFound):
        table.config("m", 2)
    table.enlist("m", "m", LISTED)
    with pytest.raises(Unavailable, match="being loaded") as refused:
        table.config("m")
    assert (refused.value.retry_after, roused) == ("1", ["m"])


def test_what_waits_meets_the_models_before_they_can_be_found(table):
    seen = []

    class Cold:
        @staticmethod
        @contextmanager
        def arriving(key, found):
            seen.append((key, table.ready("m")))
            yield
            seen.append((key, table.ready("m")))

    table.cold = Cold()
    found = models(1)
    table.swap("m", found)
    table.swap("m", {})
    assert seen == [("m", []), ("m", [found[1]])]
