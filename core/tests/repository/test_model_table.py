from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tritonpy.api.engine import ModelIndex
from tritonpy.errors import InvalidArgument, NotFound, Unavailable
from tritonpy.repository.model_table import LAZY, NO_VERSION, UNLOADED, LazyListing, ModelTable, State


@dataclass(frozen=True)
class Model:
    """Replaces a loaded version."""

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


def test_the_highest_ready_version_serves_requests_without_a_version(table):
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
def test_lookups_of_unavailable_models_raise_tritons_errors(table, name, version, kind, text):
    table.swap("m", models(1))
    table.set_state("m", 2, State.LOADING)
    table.set_model_reason("broken", "why")
    with pytest.raises(kind) as refused:
        table.find(name, version)
    assert type(refused.value) is kind
    assert refused.value.message == text


def test_a_swap_returns_the_previous_versions_and_marks_them_unloading(table):
    first, second = models(1, 2), models(2, 3)
    table.swap("m", first)
    assert table.swap("m", second) == [first[1], first[2]]
    assert lines(table) == [("1", "UNLOADING", ""), ("2", "READY", ""), ("3", "READY", "")]
    table.finish_unload("m", 1, State.UNAVAILABLE, UNLOADED)
    table.finish_unload("m", 2, State.UNAVAILABLE, UNLOADED)
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
    table.set_model_reason("m", "broken")
    assert table.find("m") is model
    assert lines(table) == [("1", "READY", "")]


def test_a_model_that_failed_before_its_versions_were_known_has_a_reason_and_no_version(table):
    table.set_model_reason("m", "broken")
    table.set_model_reason("m", "broken twice")
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


def test_a_model_that_was_never_loaded_has_only_a_name(table):
    assert table.index("m") == [ModelIndex("m")]
    assert table.ready("m") == []


def test_everything_is_listed_by_name_and_version(table):
    for name in ("b", "a"):
        table.swap(name, {10: Model(name, 10), 9: Model(name, 9)})
    assert [(model.name, model.version) for model in table.all_ready()] == [("a", 9), ("a", 10), ("b", 9), ("b", 10)]
    assert [(name, version) for name, version, _ in table.records()] == [("a", 9), ("a", 10), ("b", 9), ("b", 10)]


def test_a_model_reason_can_be_cleared():
    table = ModelTable()
    table.set_model_reason("m", "broken")
    table.clear_placeholder("m")
    assert table.index("m") == [ModelIndex("m")]
    table.clear_placeholder("missing")


def test_clearing_the_model_reason_keeps_reasons_of_versions():
    table = ModelTable()
    table.set_state("m", 1, State.UNAVAILABLE, "broken")
    table.clear_placeholder("m")
    assert [line.reason for line in table.index("m")] == ["broken"]


def test_index_lines_have_the_name_that_clients_know():
    table = ModelTable()
    table.set_state("here::m", 1, State.LOADING)
    assert table.index("here::m", "m") == [ModelIndex("m", "1", "LOADING")]


LISTED = LazyListing(None, (1, 2))


def test_a_lazy_model_is_listed_and_not_found(table):
    table.add_lazy("m", "m", LISTED)
    assert lines(table) == [("1", "UNAVAILABLE", LAZY), ("2", "UNAVAILABLE", LAZY)]
    assert table.lazy_listing("m") is table.lazy_listing("m", 2) is LISTED
    assert table.lazy_listing("m", 3) is None
    assert table.lazy_listing("other") is None
    assert table.versions("m") == [1, 2]
    assert table.can_load("m")
    with pytest.raises(NotFound):
        table.find("m")


def test_a_failed_load_of_a_lazy_model_is_visible_until_it_is_listed_again(table):
    table.set_state("m", 1, State.LOADING)
    table.add_lazy("m", "m", LISTED, "broken")
    assert lines(table)[0] == ("1", "UNAVAILABLE", f"{LAZY}; the last load failed: broken")
    assert not table.can_load("m")
    table.add_lazy("m", "m", LISTED)
    assert table.can_load("m")


def test_an_unloaded_lazy_model_is_listed_as_before(table):
    table.add_lazy("m", "m", LISTED)
    table.swap("m", models(1))
    assert lines(table) == [("1", "READY", ""), ("2", "UNAVAILABLE", LAZY)]
    table.swap("m", {})
    table.finish_unload("m", 1, State.UNAVAILABLE, UNLOADED)
    assert lines(table) == [("1", "UNAVAILABLE", LAZY), ("2", "UNAVAILABLE", LAZY)]


def test_a_removed_lazy_model_leaves_no_trace(table):
    table.add_lazy("m", "m", LISTED)
    table.remove_lazy("m")
    assert table.lazy_listing("m") is None
    assert lines(table) == [("", "", "")]


def test_the_configuration_of_a_lazy_model_comes_from_its_files_or_starts_a_load(table):
    roused = []

    class LazyLoader:
        start_load = staticmethod(roused.append)

    table.lazy_loader = LazyLoader()
    table.add_lazy("m", "m", LazyListing("of its files", (1,)))
    assert table.config("m") == "of its files"
    with pytest.raises(NotFound):
        table.config("m", 2)
    table.add_lazy("m", "m", LISTED)
    with pytest.raises(Unavailable, match="being loaded") as refused:
        table.config("m")
    assert (refused.value.retry_after, roused) == ("1", ["m"])


def test_waiting_requests_get_the_models_before_these_can_be_found(table):
    seen = []

    class LazyLoader:
        @staticmethod
        @contextmanager
        def handover(key, found):
            seen.append((key, table.ready("m")))
            yield
            seen.append((key, table.ready("m")))

    table.lazy_loader = LazyLoader()
    found = models(1)
    table.swap("m", found)
    table.swap("m", {})
    assert seen == [("m", []), ("m", [found[1]])]
